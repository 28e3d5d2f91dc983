package generators

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql/special"
)

// Found are the objects of generators on one host.
type Found struct {
	functions map[string]catalog.Functions // by schema
	sequences map[place]catalog.Sequence
	last      map[place]int64 // the last numbers of sequences in the helper schema that were used
	uuidv7    bool            // the helper schema has uuidv7()
}

// place is a sequence in a schema.
type place struct{ schema, sequence string }

// Read finds the map's generators in the helper schema and in schemas whose names match a pattern.
func Read(ctx context.Context, conn *pgx.Conn, m *shards.Map, pattern string) (Found, error) {
	found := Found{sequences: map[place]catalog.Sequence{}, last: map[place]int64{}}
	if len(m.Generators()) == 0 {
		return found, nil
	}
	const query = `SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'uuidv7' AND pronamespace = to_regnamespace($1))`
	if err := conn.QueryRow(ctx, query, mapsql.Helper).Scan(&found.uuidv7); err != nil {
		return found, err
	}
	relations, functions := Objects(m)
	var err error
	if found.functions, err = catalog.ReadFunctions(ctx, conn, pattern, functions); err != nil {
		return found, err
	}
	return found, found.readSequences(ctx, conn, pattern, relations)
}

func (f *Found) readSequences(ctx context.Context, conn *pgx.Conn, pattern string, names []string) error {
	const query = `
		SELECT n.nspname, c.relname, CASE WHEN n.nspname = $2 AND has_sequence_privilege(c.oid, 'USAGE') THEN pg_sequence_last_value(c.oid) END,
			` + catalog.SequenceColumns + `
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence s ON s.seqrelid = c.oid
		WHERE (n.nspname ~ $1 OR n.nspname = $2) AND c.relname = ANY ($3)`
	rows, _ := conn.Query(ctx, query, pattern, mapsql.Helper, names) // rows has the error
	var at place
	var last *int64
	var sequence catalog.Sequence
	_, err := pgx.ForEachRow(rows, append([]any{&at.schema, &at.sequence, &last}, sequence.Targets()...), func() error {
		f.sequences[at] = sequence
		if last != nil {
			f.last[at] = *last
		}
		return nil
	})
	return err
}

// has reports whether all objects of a generator are there.
func (f Found) has(g Generator) bool {
	functions := f.functions[g.Schema]
	_, sequence := f.sequences[place{g.Schema, g.Sequence()}]
	return functions.Has(g.Function(), 1) && functions.Has(g.Single(), 0) && (sequence || !g.hasSequence())
}

// Last returns the last numbers of generators in the helper schema of a host, by name. Before the first number it is a
// lower one.
func Last(ctx context.Context, conn *pgx.Conn, generators []Generator) (map[string]int64, error) {
	last := map[string]int64{}
	var batch pgx.Batch
	for _, g := range generators {
		query := fmt.Sprintf(`SELECT coalesce(pg_sequence_last_value($1::text::regclass), %d)`, max(0, g.start-g.step))
		arg := g.Schema + "." + g.Sequence()
		if g.kind == shards.Row {
			batch.Queue(special.Refuse("kiloshard.counters"))
			query, arg = `SELECT value FROM kiloshard.counters WHERE name = $1`, g.Name
		}
		batch.Queue(query, arg).QueryRow(func(row pgx.Row) error {
			var value int64
			err := row.Scan(&value)
			last[g.Name] = value
			return err
		})
	}
	return last, conn.SendBatch(ctx, &batch).Close()
}
