package sql

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"strings"
	"text/template"
	"time"
)

// Refused is the SQLSTATE of what Kiloshard's SQL refuses to do.
const Refused = "KS001"

// The SQLSTATEs of a shard that a migration is not run in: it does not stand at the version that was expected, or
// somebody else is at work in it.
const (
	ShardMoved = "KSV01"
	ShardBusy  = "KSV02"
)

// LockClass is the first key of all advisory locks that Kiloshard takes with two keys; of the
// engine's the second is a sequence's OID, or 0 while it is installed. It spells "kilo".
const LockClass = 0x6B696C6F

// How far a value of a sequence may lie from the clock, in milliseconds, to be used as it is.
const (
	windowBehind = 15
	windowAhead  = 5
)

// release is the SQLSTATE by which the engine leaves a block, to give a lock back.
const release = "KS000"

// block is how many IDs next_ids draws at once, after one by next_id.
const block = 127

//go:embed *.sql
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"literal": literal}).ParseFS(files, "*.sql"))

// Params are what the scripts are rendered with.
type Params struct {
	Cluster      string
	SchemaPrefix string    // a plain identifier that needs no quotes
	Epoch        time.Time // means nothing without a time
	End          time.Time // the first moment for which no ID can be made; means nothing without a time
	TimeBits     int       // usable ones: TimeBits, ShardBits, TypeBits and SequenceBits add up to 63 at most; 0 for IDs without a time
	ShardBits    int
	TypeBits     int // 0 for IDs without a type
	SequenceBits int
}

// Engine returns the script that installs the helper schema, and the version of the engine that
// kiloshard.settings will hold afterwards. The version changes with the parameters too, so that a
// database that has it needs no installing.
func Engine(p Params) (script, version string) {
	sum := sha256.Sum256([]byte(engine(p, "")))
	version = hex.EncodeToString(sum[:8])
	return engine(p, version), version
}

func engine(p Params, version string) string {
	maker := "engine.sql"
	if p.TimeBits == 0 {
		maker = "local.sql"
		p.Epoch = time.Unix(0, 0) // for all such clusters the same, since the settings are compared
	}
	data := engineData{Params: p, Version: version}
	return render("install.sql", data) + "\n" + render(maker, data) + "\n" + render("parts.sql", data)
}

// Shard returns the script that makes a shard's schema with the functions in it.
func Shard(p Params, number int, schema string) string {
	return render("shard.sql", shardData{engineData: engineData{Params: p}, Number: number, Schema: schema})
}

func render(name string, data any) string {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic("bug: " + err.Error())
	}
	return b.String()
}

// literal returns a text as an SQL string constant, for standard_conforming_strings on or off.
func literal(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// Ledger returns the script that makes the ledger of migrations, unless it is there.
func Ledger() string { return render("ledger.sql", engineData{}) }

// Maps returns the script that makes the table of the maps in a control database, unless it is there.
func Maps() string { return render("maps.sql", engineData{}) }
