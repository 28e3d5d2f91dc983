package columns

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
)

// Default is the default of a column in a shard's schema that calls next_id or next_ids of a shard, with one of the
// sequences that it names.
type Default struct {
	Schema, Table, Column        string
	FunctionSchema, Function     string
	SequenceSchema, SequenceName string // empty if it names none
	OtherSetters                 string // other roles that can set the sequence; empty for none
	Sequence                     catalog.Sequence
}

// ReadDefaults finds defaults by their dependencies: the functions that they call, and the sequences that they name as
// constants of type regclass.
func ReadDefaults(ctx context.Context, conn *pgx.Conn, pattern string) ([]Default, error) {
	const query = `
		WITH shard AS MATERIALIZED (SELECT oid, nspname FROM pg_namespace WHERE nspname ~ $1)
		SELECT ts.nspname, t.relname, a.attname, fs.nspname, f.proname,
			coalesce(sn.nspname, ''), coalesce(c.relname, ''), concat_ws(', ', ` + catalog.OtherSetters + `), ` + catalog.SequenceColumns + `
		FROM pg_depend df
		JOIN pg_proc f ON f.oid = df.refobjid AND f.proname IN ('next_id', 'next_ids')
		JOIN shard fs ON fs.oid = f.pronamespace
		JOIN pg_attrdef d ON d.oid = df.objid
		JOIN pg_class t ON t.oid = d.adrelid
		JOIN shard ts ON ts.oid = t.relnamespace
		JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
		LEFT JOIN (
			pg_depend ds
			JOIN pg_class c ON c.oid = ds.refobjid AND c.relkind = 'S'
			JOIN pg_sequence s ON s.seqrelid = c.oid
			JOIN pg_namespace sn ON sn.oid = c.relnamespace
		) ON ds.objid = d.oid AND ds.classid = 'pg_attrdef'::regclass AND ds.refclassid = 'pg_class'::regclass
		WHERE df.classid = 'pg_attrdef'::regclass AND df.refclassid = 'pg_proc'::regclass`
	rows, _ := conn.Query(ctx, query, pattern) // rows has the error
	var all []Default
	var d Default
	targets := []any{&d.Schema, &d.Table, &d.Column, &d.FunctionSchema, &d.Function, &d.SequenceSchema, &d.SequenceName, &d.OtherSetters}
	_, err := pgx.ForEachRow(rows, append(targets, d.Sequence.Targets()...), func() error {
		all = append(all, d)
		return nil
	})
	return all, err
}

// Compare adds the differences of a default in a shard. It should call a function of the shard, and use a sequence of
// the shard that makes IDs as the shard's own does, from any start.
func (d Default) Compare(l *difference.List, want catalog.Sequence) {
	column := fmt.Sprintf("the default of %s.%s", d.Table, d.Column)
	if d.FunctionSchema != d.Schema {
		l.Add(difference.Function, d.Schema, fmt.Sprintf("%s calls %s.%s", column, d.FunctionSchema, d.Function), d.Schema+"."+d.Function)
	}
	want.Start = d.Sequence.Start
	name := d.SequenceSchema + "." + d.SequenceName
	switch {
	case d.SequenceName == "":
	case d.SequenceSchema != d.Schema:
		l.Add(difference.Sequence, d.Schema, fmt.Sprintf("%s draws from %s", column, name), "a sequence of "+d.Schema)
	case d.SequenceName == catalog.IDSequenceName: // the shard's own is compared by itself
	case d.OtherSetters != "":
		l.Add(difference.Sequence, d.Schema, fmt.Sprintf("%s draws from %s: %s", column, name, d.OtherSetters),
			"only its owner, that of the schema")
	case d.Sequence != want:
		l.Add(difference.Sequence, d.Schema, fmt.Sprintf("%s draws from %s, which has %s", column, name, d.Sequence), want.String())
	}
}
