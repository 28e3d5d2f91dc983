package provision

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// foundGenerators is what is there of generators in one schema.
type foundGenerators struct {
	functions map[functionKey]function
	sequences map[string]sequence // by name
	last      map[string]int64    // by name, for sequences of the helper schema that were drawn from
}

// takeGenerators looks for the map's generators in the schemas that look like shards, and in the helper schema.
func (inv *inventory) takeGenerators(ctx context.Context, conn *pgx.Conn, pattern string, generators []shards.Generator) error {
	inv.generators = map[string]foundGenerators{}
	if len(generators) == 0 {
		return nil
	}
	var functions, sequences []string
	for _, g := range generators {
		for _, w := range named(g, helper, 0) {
			functions = append(functions, w.Function(), w.Single())
			sequences = append(sequences, w.Sequence())
		}
	}
	const query = `SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'uuidv7' AND pronamespace = to_regnamespace($1))`
	if err := conn.QueryRow(ctx, query, helper).Scan(&inv.uuidv7); err != nil {
		return err
	}
	if err := inv.takeGeneratorFunctions(ctx, conn, pattern, functions); err != nil {
		return err
	}
	return inv.takeProgressions(ctx, conn, pattern, sequences)
}

// generatorsIn returns what is found in a schema, to be added to.
func (inv *inventory) generatorsIn(schema string) foundGenerators {
	found, ok := inv.generators[schema]
	if !ok {
		found = foundGenerators{functions: map[functionKey]function{}, sequences: map[string]sequence{}, last: map[string]int64{}}
		inv.generators[schema] = found
	}
	return found
}

func (inv *inventory) takeGeneratorFunctions(ctx context.Context, conn *pgx.Conn, pattern string, names []string) error {
	rows, err := conn.Query(ctx, functionsQuery, pattern, helper, names)
	if err != nil {
		return err
	}
	var (
		schema string
		key    functionKey
		found  function
	)
	_, err = pgx.ForEachRow(rows, append([]any{&schema}, found.fields(&key)...), func() error {
		inv.generatorsIn(schema).functions[key] = found
		return nil
	})
	return err
}

func (inv *inventory) takeProgressions(ctx context.Context, conn *pgx.Conn, pattern string, names []string) error {
	const query = `
		SELECT n.nspname, c.relname, CASE WHEN n.nspname = $2 AND has_sequence_privilege(c.oid, 'USAGE') THEN pg_sequence_last_value(c.oid) END, ` + sequenceColumns + `
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence s ON s.seqrelid = c.oid
		WHERE (n.nspname ~ $1 OR n.nspname = $2) AND c.relname = ANY ($3)`
	rows, err := conn.Query(ctx, query, pattern, helper, names)
	if err != nil {
		return err
	}
	var (
		schema, name string
		last         *int64
		found        sequence
	)
	_, err = pgx.ForEachRow(rows, append([]any{&schema, &name, &last}, found.fields()...), func() error {
		if last != nil {
			inv.generatorsIn(schema).last[name] = *last
		}
		inv.generatorsIn(schema).sequences[name] = found
		return nil
	})
	return err
}
