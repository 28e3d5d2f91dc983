package drift

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// args are the parameters of every query for lines.
func (s *session) args() []any { return []any{s.schemas, s.numbers, s.tables, s.functions} }

// prints returns the hashes of the shards' structures: as they are, and with the shard's number replaced. A missing schema
// has none.
func (s *session) prints(ctx context.Context) (map[shards.Number][2]fingerprint, error) {
	query := lines(parts) + hashed + `
		SELECT s.name, sha256(coalesce(string_agg(h.plain, ''::bytea ORDER BY h.plain), '')),
			sha256(coalesce(string_agg(h.numbered, ''::bytea ORDER BY h.numbered), ''))
		FROM shard s LEFT JOIN hashed h ON h.name = s.name GROUP BY s.name`
	rows, err := s.conn.Query(ctx, query, s.args()...)
	if err != nil {
		return nil, err
	}
	prints := map[shards.Number][2]fingerprint{}
	var name string
	var plain, numbered []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &plain, &numbered}, func() error {
		prints[s.byName[name]] = [2]fingerprint{{rest: hash(plain)}, {rest: hash(numbered)}}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("structure of its shards: %w", err)
	}
	err = s.locking(ctx, hashed+` SELECT name, plain, numbered FROM hashed`, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&name, &plain, &numbered}, func() error {
			p := prints[s.byName[name]]
			p[0].locking, p[1].locking = append(p[0].locking, hash(plain)), append(p[1].locking, hash(numbered))
			prints[s.byName[name]] = p
			return nil
		})
		return err
	})
	return prints, err
}

// structures returns the structures of the shards.
func (s *session) structures(ctx context.Context) (map[shards.Number]Structure, error) {
	each := normal + ` SELECT name, key, text, class::oid, object, part::int, rank FROM normal`
	found := map[shards.Number]Structure{}
	read := func(locking bool) func(rows pgx.Rows) error {
		return func(rows pgx.Rows) error {
			l := Line{locking: locking}
			var name string
			_, err := pgx.ForEachRow(rows, []any{&name, &l.Key, &l.Text, &l.Class, &l.Object, &l.Part, &l.Rank}, func() error {
				found[s.byName[name]] = append(found[s.byName[name]], l)
				return nil
			})
			return err
		}
	}
	for _, n := range s.byName {
		found[n] = Structure{}
	}
	rows, err := s.conn.Query(ctx, lines(parts)+each, s.args()...)
	if err == nil {
		err = read(false)(rows)
	}
	if err != nil {
		return nil, fmt.Errorf("structure of its shards: %w", err)
	}
	return found, s.locking(ctx, each, read(true))
}

// lockingBatch is the number of objects in a query that locks tables for each of them.
const lockingBatch = 200

// object is an object of [lockingParts].
type object struct {
	schema     string
	class, oid uint32
}

// locking runs a query over the lines of [lockingParts], batch by batch.
func (s *session) locking(ctx context.Context, query string, read func(pgx.Rows) error) error {
	const list = `
		WITH shard AS MATERIALIZED (SELECT n.oid, u.name FROM unnest($1::text[]) u (name) JOIN pg_namespace n ON n.nspname = u.name)
		SELECT s.name, 'pg_class'::regclass::oid AS class, c.oid FROM pg_class c JOIN shard s ON s.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')
		UNION ALL
		SELECT s.name, 'pg_rewrite'::regclass, r.oid FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN shard s ON s.oid = c.relnamespace WHERE r.rulename <> '_RETURN'
		UNION ALL
		SELECT s.name, 'pg_policy'::regclass, p.oid FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN shard s ON s.oid = c.relnamespace
		UNION ALL
		SELECT s.name, 'pg_proc'::regclass, p.oid FROM pg_proc p JOIN shard s ON s.oid = p.pronamespace WHERE p.prosqlbody IS NOT NULL
		ORDER BY class, name, oid`
	rows, err := s.conn.Query(ctx, list, s.schemas)
	if err != nil {
		return err
	}
	found := map[uint32][]object{} // by class
	var o object
	if _, err = pgx.ForEachRow(rows, []any{&o.schema, &o.class, &o.oid}, func() error {
		found[o.class] = append(found[o.class], o)
		return nil
	}); err != nil {
		return fmt.Errorf("views of its shards: %w", err)
	}
	for class, objects := range found {
		for batch := range slices.Chunk(objects, lockingBatch) {
			if err := s.lockingBatch(ctx, query, class, batch, read); err != nil {
				return fmt.Errorf("views of its shards: %w", err)
			}
		}
	}
	return nil
}

// lockingBatch runs the query for some objects of one class.
func (s *session) lockingBatch(ctx context.Context, query string, class uint32, batch []object, read func(pgx.Rows) error) error {
	var oids []uint32
	var schemas []string
	var numbers []int32
	for _, o := range batch {
		oids = append(oids, o.oid)
		if len(schemas) == 0 || schemas[len(schemas)-1] != o.schema { // they are sorted
			schemas, numbers = append(schemas, o.schema), append(numbers, int32(s.byName[o.schema]))
		}
	}
	rows, err := s.conn.Query(ctx, lines(lockingParts)+query, schemas, numbers, s.tables, s.functions, oids, class)
	if err != nil {
		return err
	}
	return read(rows)
}
