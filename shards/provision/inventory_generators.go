package provision

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// foundGenerators is what is there of generators in one schema.
type foundGenerators struct {
	functions map[functionKey]function
	sequences map[string]progression // by name
}

// progression is what pg_sequence says of a generator's sequence.
type progression struct {
	Start, Increment, Minimum, Cache int64
	Type                             string
	Cycle                            bool
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
		found = foundGenerators{functions: map[functionKey]function{}, sequences: map[string]progression{}}
		inv.generators[schema] = found
	}
	return found
}

func (inv *inventory) takeGeneratorFunctions(ctx context.Context, conn *pgx.Conn, pattern string, names []string) error {
	const query = `
		SELECT n.nspname, p.proname, p.pronargs, l.lanname, p.prosrc
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
		WHERE (n.nspname ~ $1 OR n.nspname = $2) AND p.proname = ANY ($3)`
	rows, err := conn.Query(ctx, query, pattern, helper, names)
	if err != nil {
		return err
	}
	var (
		schema string
		key    functionKey
		found  function
	)
	_, err = pgx.ForEachRow(rows, []any{&schema, &key.Name, &key.Args, &found.Language, &found.Body}, func() error {
		inv.generatorsIn(schema).functions[key] = found
		return nil
	})
	return err
}

func (inv *inventory) takeProgressions(ctx context.Context, conn *pgx.Conn, pattern string, names []string) error {
	const query = `
		SELECT n.nspname, c.relname, s.seqstart, s.seqincrement, s.seqmin, s.seqcache, format_type(s.seqtypid, NULL), s.seqcycle
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence s ON s.seqrelid = c.oid
		WHERE (n.nspname ~ $1 OR n.nspname = $2) AND c.relname = ANY ($3)`
	rows, err := conn.Query(ctx, query, pattern, helper, names)
	if err != nil {
		return err
	}
	var (
		schema, name string
		p            progression
	)
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &p.Start, &p.Increment, &p.Minimum, &p.Cache, &p.Type, &p.Cycle}, func() error {
		inv.generatorsIn(schema).sequences[name] = p
		return nil
	})
	return err
}
