package provision

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// columnDefault is the default of a column in a shard's schema that calls a next_id or next_ids of a
// shard, with one of the sequences that it names.
type columnDefault struct {
	Schema, Table, Column        string
	FunctionSchema, Function     string
	SequenceSchema, SequenceName string // empty when it names none
	OtherSetters                 string // other roles that can set the sequence; empty for none
	sequence
}

// takeDefaults finds them by what Postgres notes that a default depends on: the functions that it
// calls, and the sequences that it names as constants of type regclass.
func (inv *inventory) takeDefaults(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		WITH shard AS MATERIALIZED (SELECT oid, nspname FROM pg_namespace WHERE nspname ~ $1)
		SELECT ts.nspname, t.relname, a.attname, fs.nspname, f.proname,
			coalesce(sn.nspname, ''), coalesce(c.relname, ''), concat_ws(', ', ` + otherSetters + `), ` + sequenceColumns + `
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
	rows, err := conn.Query(ctx, query, pattern)
	if err != nil {
		return err
	}
	var d columnDefault
	fields := []any{&d.Schema, &d.Table, &d.Column, &d.FunctionSchema, &d.Function, &d.SequenceSchema, &d.SequenceName, &d.OtherSetters}
	_, err = pgx.ForEachRow(rows, append(fields, d.fields()...), func() error {
		inv.defaults = append(inv.defaults, d)
		return nil
	})
	return err
}

// defaults compares what the columns' defaults draw from with what the shard of their table must draw
// from: its own function, and sequences of its own that are made like next_id_seq.
func (v *verification) defaults(inv *inventory) {
	want := v.sequence()
	for _, d := range inv.defaults {
		if n, ok := v.m.NumberOf(d.Schema); !ok || !v.m.Has(n) {
			continue // a stray schema, which is a difference itself
		}
		column := fmt.Sprintf("the default of %s.%s", d.Table, d.Column)
		if d.FunctionSchema != d.Schema {
			v.differ(KindFunction, inv, d.Schema, fmt.Sprintf("%s calls %s.%s", column, d.FunctionSchema, d.Function), d.Schema+"."+d.Function)
		}
		want.Start = d.Start // where a table's own begins is its own affair
		name := d.SequenceSchema + "." + d.SequenceName
		switch {
		case d.SequenceName == "":
		case d.SequenceSchema != d.Schema:
			v.differ(KindSequence, inv, d.Schema, fmt.Sprintf("%s draws from %s", column, name), "a sequence of "+d.Schema)
		case d.OtherSetters != "" && d.SequenceName != ownSequence:
			v.differ(KindSequence, inv, d.Schema, fmt.Sprintf("%s draws from %s: %s", column, name, d.OtherSetters), "only its owner, that of the schema")
		case d.sequence != want && d.SequenceName != ownSequence:
			v.differ(KindSequence, inv, d.Schema, fmt.Sprintf("%s draws from %s, which has %s", column, name, d.sequence), want.String())
		}
	}
}

// sequence is what every sequence that makes IDs of the map must be.
func (v *verification) sequence() sequence {
	return sequence{Type: "bigint", Start: 1, Increment: 1, Min: 1, Max: v.m.Layout().MaxSequenceValue(), Cache: 1, Persistence: "permanent"}
}

// ownSequence is the sequence of each shard's next_id().
const ownSequence = "next_id_seq"
