package sql

import (
	"bytes"
	"embed"
	"strings"
	"text/template"
	"time"
)

// Refused is the SQLSTATE of what Kiloshard's SQL refuses to do.
const Refused = "KS001"

// The SQLSTATEs of a shard that a migration is not run in: it is not at the expected version, or
// another process is migrating it.
const (
	ShardMoved = "KSV01"
	ShardBusy  = "KSV02"
)

// ShardGone is the SQLSTATE with which the old place of a shard refuses, after the shard has moved to another host.
const ShardGone = "KSM01"

// ShardMoving is the SQLSTATE of a migration of a shard that is being moved to another host.
const ShardMoving = "KSM02"

// LockClass is the first key of the advisory lock of those who install something; the second is 0, or 1 for the length of
// a session that makes shards. It spells "kilo".
const LockClass = 0x6B696C6F

// ShardLock is the first key of a shard's advisory lock; the second is the shard's number. A migration of the shard holds
// it exclusively.
const ShardLock = LockClass + 1

// How far a value of a sequence may lie from the clock, in milliseconds, to be used as it is.
const (
	windowBehind = 15
	windowAhead  = 5
)

// Setters is how many tables kiloshard_locks.setter_N there are, N being the remainder of a sequence's OID, whose locks setters take: so many that those of two shards seldom meet, even while
// one of them is frozen.
const Setters = 64

// setterWait is for how long a setter waits for another one, as lock_timeout takes it.
const setterWait = "30s"

// windowShort is how far ahead of the clock load alone may bring a sequence, in milliseconds. What leads by more has
// seen the clock step back.
const windowShort = 1000

// release is the SQLSTATE by which the engine leaves a block, to give a lock back.
const release = "KS000"

//go:embed *.sql
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"literal": literal, "names": names}).ParseFS(files, "*.sql"))

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
	version = versionOf(engine(p, ""))
	return engine(p, version), version
}

func engine(p Params, version string) string {
	maker := "engine.sql"
	if p.TimeBits == 0 {
		maker = "local.sql"
		p.Epoch = time.Unix(0, 0) // for all such clusters the same, since the settings are compared
	}
	data := engineData{Params: p, Version: version}
	script := render("install.sql", data) + "\n" + render(maker, data) + "\n" + render("parts.sql", data)
	if p.TimeBits > 0 {
		script += "\n" + render("advance.sql", data) + "\n" + render("before.sql", data)
	}
	return script
}

// Shard returns the script that makes a shard's schema with the functions in it. The version is the same for all
// shards of the params, and stands in the comment of next_id().
func Shard(p Params, number int, schema string) string {
	script := func(number int, schema string) string {
		return render("shard.sql", shardData{engineData: engineData{Params: p}, Number: number, Schema: schema})
	}
	return withVersion(script(number, schema), "FUNCTION "+schema+".next_id()", versionOf(script(0, "shard")))
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
