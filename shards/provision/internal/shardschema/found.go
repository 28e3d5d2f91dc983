package shardschema

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
)

// Found is a schema with the name of a shard.
type Found struct {
	Ours     bool   // it has an object of a shard
	Complete bool   // it has all objects of a shard, in any version
	Owner    string // role
}

// Read finds, by name, the schemas whose names match a pattern.
func (w *Wanted) Read(ctx context.Context, conn *pgx.Conn, pattern string) (map[string]Found, error) {
	const query = `
		SELECT n.nspname, c.oid IS NOT NULL OR coalesce(f.count, 0) > 0, c.oid IS NOT NULL AND coalesce(f.count, 0) = cardinality($2::name[]),
			pg_get_userbyid(n.nspowner)
		FROM pg_namespace n
		LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'next_id_seq' AND c.relkind = 'S'
		LEFT JOIN (
			SELECT p.pronamespace, count(DISTINCT (p.proname, p.pronargs)) FROM pg_proc p
			JOIN unnest($2::name[], $3::int[]) f (name, args) ON f.name = p.proname AND f.args = p.pronargs
			GROUP BY p.pronamespace
		) f ON f.pronamespace = n.oid
		WHERE n.nspname ~ $1`
	var names []string
	var args []int
	for _, f := range w.functions(0) {
		names, args = append(names, f.Name), append(args, f.Args)
	}
	rows, _ := conn.Query(ctx, query, pattern, names, args) // rows has the error
	all := map[string]Found{}
	var name string
	var found Found
	_, err := pgx.ForEachRow(rows, []any{&name, &found.Ours, &found.Complete, &found.Owner}, func() error {
		all[name] = found
		return nil
	})
	return all, err
}

// Sequence describes the relation that has the name of a shard's ID sequence.
type Sequence struct {
	*catalog.Sequence        // nil if it is missing or no sequence
	setters           string // other roles that can set it, or the column that owns it; empty for none
}

// ReadSequences returns the ID sequences, by schema, of the schemas whose names match a pattern.
func ReadSequences(ctx context.Context, conn *pgx.Conn, pattern string) (map[string]Sequence, error) {
	const query = `
		SELECT sn.nspname, s.seqrelid IS NOT NULL, concat_ws(', ',
				` + catalog.OtherSetters + `,
				CASE WHEN EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i'))
					THEN 'it belongs to a column' END),
			` + catalog.SequenceColumns + `
		FROM pg_namespace sn
		LEFT JOIN pg_class c ON c.relnamespace = sn.oid AND c.relname = 'next_id_seq'
		LEFT JOIN pg_sequence s ON s.seqrelid = c.oid
		WHERE sn.nspname ~ $1`
	rows, _ := conn.Query(ctx, query, pattern) // rows has the error
	all := map[string]Sequence{}
	var schema, setters string
	var is bool
	var found catalog.Sequence
	_, err := pgx.ForEachRow(rows, append([]any{&schema, &is, &setters}, found.Targets()...), func() error {
		s := Sequence{setters: setters}
		if is {
			sequence := found
			s.Sequence = &sequence
		}
		all[schema] = s
		return nil
	})
	return all, err
}
