package sql

import (
	"bytes"
	"embed"
	"text/template"
)

//go:embed generators/*.sql
var generatorFiles embed.FS

var generatorTemplates = template.Must(template.ParseFS(generatorFiles, "generators/*.sql"))

// Generator says where the functions next_<Name>_id() and next_<Name>_ids(n) stand.
type Generator struct {
	Schema string // of a shard, or kiloshard
	Name   string // a plain identifier that needs no quotes
}

// Sequence is the name of a progression's sequence, without its schema.
func (g Generator) Sequence() string { return "next_" + g.Name + "_id_seq" }

// Function is the name of the function that makes n IDs, without its schema.
func (g Generator) Function() string { return "next_" + g.Name + "_ids" }

// Single is the name of the function that makes one ID, without its schema.
func (g Generator) Single() string { return "next_" + g.Name + "_id" }

// Progression returns the script that makes a generator of start, start+step and so on.
func (g Generator) Progression(start, step int64) string {
	return g.render("progression.sql", struct {
		Generator
		Start, Step int64
	}{g, start, step})
}

// Row returns the script that makes a generator of 1, 2 and so on without a gap, kept in the table counters.
func (g Generator) Row() string { return g.render("row.sql", g) }

// UUIDv4 returns the script that makes a generator of random UUIDs.
func (g Generator) UUIDv4() string { return g.uuid("pg_catalog.gen_random_uuid") }

// UUIDv7 returns the script that makes a generator of UUIDs that begin with the time. It needs the function that
// [UUIDv7] makes.
func (g Generator) UUIDv7() string { return g.uuid("kiloshard.uuidv7") }

// UUIDv7 returns the script that makes the function kiloshard.uuidv7().
func UUIDv7() string { return Generator{}.render("uuidv7.sql", nil) }

func (g Generator) uuid(function string) string {
	return g.render("uuid.sql", struct{ Schema, Name, Function string }{g.Schema, g.Name, function})
}

func (Generator) render(name string, data any) string {
	var b bytes.Buffer
	if err := generatorTemplates.ExecuteTemplate(&b, name, data); err != nil {
		panic("bug: " + err.Error())
	}
	return b.String()
}
