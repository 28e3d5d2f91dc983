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

//go:embed engine.sql shard.sql
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"literal": literal}).ParseFS(files, "*.sql"))

// Params are what the scripts are rendered with.
type Params struct {
	Cluster      string
	SchemaPrefix string // a plain identifier that needs no quotes
	Epoch        time.Time
	End          time.Time // the first moment for which no ID can be made
	TimeBits     int       // usable ones: TimeBits, ShardBits and SequenceBits add up to 63 at most
	ShardBits    int
	SequenceBits int
}

// Engine returns the script that installs the helper schema, and the version of the engine that
// kiloshard.settings will hold afterwards. The version changes with the parameters too, so that a
// database that has it needs no installing.
func Engine(p Params) (script, version string) {
	sum := sha256.Sum256([]byte(render("engine.sql", engineData{Params: p})))
	version = hex.EncodeToString(sum[:8])
	return render("engine.sql", engineData{Params: p, Version: version}), version
}

// Shard returns the script that makes a shard's schema with the functions in it.
func Shard(p Params, number int, schema string) string {
	return render("shard.sql", shardData{
		Number: number, Schema: schema, MaxSequenceValue: engineData{Params: p}.MaxSequenceValue(),
	})
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
