package sql

import (
	"bytes"
	"embed"
	"strings"
	"text/template"
	"time"

	"github.com/kiloshard/kiloshard/sql/special"
)

// Refused is the SQLSTATE with which Kiloshard's SQL refuses an operation.
const Refused = special.Refused

// The SQLSTATEs of a shard that cannot be migrated now: it is not at the expected version, or another process is
// migrating it.
const (
	ShardMoved = "KSV01"
	ShardBusy  = "KSV02"
)

// LeftShard is the SQLSTATE of a migration that changed objects outside its shard. The message lists them; the error's
// schema name is that of the first, empty if it is in none.
const LeftShard = "KSV03"

// ShardGone is the SQLSTATE of a statement on the host that a shard has moved away from.
const ShardGone = "KSM01"

// ShardMoving is the SQLSTATE of a migration of a shard that is being moved to another host.
const ShardMoving = "KSM02"

// LockClass is the first key of the advisory locks of installations. The second key is 0, or 1 for a session that makes
// shards. It spells "kilo".
const LockClass = 0x6B696C6F

// ShardLock is the first key of a shard's advisory lock; the second is the shard's number. A migration of the shard holds
// it exclusively.
const ShardLock = LockClass + 1

// The window around the clock, in milliseconds, in which a session draws from a sequence without a lock.
const (
	windowBehind = 15
	windowAhead  = 5
)

// Setters is the number of tables kiloshard_locks.setter_N. A setter locks the one whose N is the remainder of the
// sequence's OID. There are enough of them that the setters of two shards seldom share one.
const Setters = 64

// setterWait is how long a setter waits for another one, as a value of lock_timeout.
const setterWait = "30s"

// windowShort is how far load alone can bring a sequence ahead of the clock, in milliseconds. A sequence that leads by
// more has seen the clock step back.
const windowShort = 1000

// release is the SQLSTATE that the engine raises to leave a block and release its lock.
const release = "KS000"

//go:embed *.sql
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"literal": literal, "names": names}).ParseFS(files, "*.sql"))

// Params are the parameters of the scripts.
type Params struct {
	Cluster      string
	SchemaPrefix string    // a plain identifier that needs no quotes
	Epoch        time.Time // ignored if TimeBits is 0
	End          time.Time // exclusive: the first time that no ID can hold; ignored if TimeBits is 0
	TimeBits     int       // without the sign bit: the four add up to at most 63; 0 for IDs without a time
	ShardBits    int
	TypeBits     int // 0 for IDs without a type
	SequenceBits int
}

// Engine returns the script that installs the helper schema, and the version of the engine that the script stores in
// kiloshard.settings. The version depends on the parameters too, so a database that has it need not be installed again.
func Engine(p Params) (script, version string) {
	version = versionOf(engine(p, ""))
	return engine(p, version), version
}

func engine(p Params, version string) string {
	maker := "engine.sql"
	if p.TimeBits == 0 {
		maker = "local.sql"
		p.Epoch = time.Unix(0, 0) // the same for all such clusters, since the settings are compared
	}
	data := engineData{Params: p, Version: version}
	script := render("install.sql", data) + "\n" + render(maker, data) + "\n" + render("parts.sql", data) + "\n" + render("audit.sql", data)
	if p.TimeBits > 0 {
		script += "\n" + render("advance.sql", data) + "\n" + render("before.sql", data)
	}
	return script
}

// Shard returns the script that makes a shard's schema and functions. The version is the same for all shards with these
// parameters; the comment of next_id() holds it.
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
