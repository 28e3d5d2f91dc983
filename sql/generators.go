package sql

import (
	"bytes"
	"embed"
	"text/template"
)

//go:embed generators/*.sql
var generatorFiles embed.FS

var generatorTemplates = template.Must(template.ParseFS(generatorFiles, "generators/*.sql"))

// Generator is the schema and name of the functions next_<Name>_id() and next_<Name>_ids(n).
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

// Progression returns the script that makes a generator of start, start+step and so on. The comment of
// [Generator.Function] holds the generator's version, which depends neither on its schema and name nor on its numbers.
func (g Generator) Progression(start, step int64) string {
	type data struct {
		Generator
		Start, Step int64
	}
	return g.versioned("progression.sql", data{g, start, step}, data{anyGenerator, 1, 1})
}

// Row returns the script that makes a generator of start, start+1 and so on without a gap, kept in the table counters. Its
// version does not depend on the start.
func (g Generator) Row(start int64) string {
	type data struct {
		Generator
		Before int64
	}
	return g.versioned("row.sql", data{g, start - 1}, data{anyGenerator, 0})
}

// UUIDv4 returns the script that makes a generator of random UUIDs.
func (g Generator) UUIDv4() string { return g.uuid("pg_catalog.gen_random_uuid") }

// UUIDv7 returns the script that makes a generator of UUIDs that begin with the time. It needs the function that
// [UUIDv7] makes.
func (g Generator) UUIDv7() string { return g.uuid("kiloshard.uuidv7") }

// UUIDv7 returns the script that makes the function kiloshard.uuidv7(), with the version in its comment.
func UUIDv7() string {
	script := renderGenerator("uuidv7.sql", nil)
	return withVersion(script, "FUNCTION kiloshard.uuidv7()", versionOf(script))
}

func (g Generator) uuid(function string) string {
	type data struct{ Schema, Name, Function string }
	return g.versioned("uuid.sql", data{g.Schema, g.Name, function}, data{anyGenerator.Schema, anyGenerator.Name, function})
}

// anyGenerator is the generator that versions are computed from.
var anyGenerator = Generator{Schema: "shard", Name: "name"}

func (g Generator) versioned(file string, data, anyData any) string {
	object := "FUNCTION " + g.Schema + "." + g.Function() + "(int)"
	return withVersion(renderGenerator(file, data), object, versionOf(renderGenerator(file, anyData)))
}

func renderGenerator(name string, data any) string {
	var b bytes.Buffer
	if err := generatorTemplates.ExecuteTemplate(&b, name, data); err != nil {
		panic("bug: " + err.Error())
	}
	return b.String()
}
