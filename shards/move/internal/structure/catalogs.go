package structure

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// catalogQuery hashes what the catalogs say of a schema and all that is in it. Each catalog row is known by the transaction that wrote
// it, but for those of pg_class, which TRUNCATE writes, too, and that of the schema, which the fence gives another name. With $2 a
// materialised view counts as changed once it is refreshed. The second hash is without that, and without what the move itself
// changes of the old schema: sequences, replica identities, publications. The schema's grants, which the fence revokes, are those in the ledger.
var catalogQuery = `
WITH RECURSIVE parts (class, oid) AS (
  SELECT 'pg_namespace'::regclass::oid, oid FROM pg_namespace WHERE nspname = $1
  UNION
  SELECT d.classid, d.objid FROM parts p JOIN pg_depend d ON d.refclassid = p.class AND d.refobjid = p.oid
  WHERE d.deptype IN ('a', 'i', 'P', 'S') OR p.class = 'pg_namespace'::regclass
), written (class, oid, part, by) AS (
  SELECT class, oid, CASE WHEN class IN ('pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass) THEN -1 ELSE 0 END, '' FROM parts
  UNION ALL SELECT class, p.oid, 0, concat_ws(' ', nspowner, coalesce(
    (SELECT grants FROM kiloshard.moves WHERE schema || '__moved_' || id = $1), nspacl)) FROM parts p JOIN pg_namespace n ON n.oid = p.oid WHERE class = 'pg_namespace'::regclass
  UNION ALL
  SELECT class, p.oid, 0, concat_ws(' ', relname, relnamespace, relowner, relam, reltablespace, relpersistence, relkind, relnatts, relchecks, relrowsecurity, relforcerowsecurity,
    relacl, reloptions) FROM parts p JOIN pg_class c ON c.oid = p.oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, p.oid, -1, relreplident::text FROM parts p JOIN pg_class c ON c.oid = p.oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, p.oid, -1, relfilenode::text FROM parts p JOIN pg_class c ON c.oid = p.oid WHERE class = 'pg_class'::regclass AND relkind = 'm' AND $2
  UNION ALL SELECT class, oid, attnum, a.xmin::text FROM parts JOIN pg_attribute a ON attrelid = oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, oid, inhseqno, h.xmin::text FROM parts JOIN pg_inherits h ON inhrelid = oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, oid, 0, i.xmin::text FROM parts JOIN pg_index i ON indexrelid = oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, oid, -1, s.xmin::text FROM parts JOIN pg_sequence s ON seqrelid = oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, p.oid, e.oid::int, e.xmin::text FROM parts p JOIN pg_enum e ON enumtypid = p.oid WHERE class = 'pg_type'::regclass
  UNION ALL SELECT class, oid, objsubid, x.xmin::text FROM parts JOIN pg_description x ON objoid = oid AND classoid = class` +
	rowsOf("pg_type", "pg_proc", "pg_constraint", "pg_attrdef", "pg_trigger", "pg_rewrite", "pg_policy", "pg_statistic_ext", "pg_default_acl") + `
)
SELECT md5(string_agg(line, ',' ORDER BY line)), md5(string_agg(line, ',' ORDER BY line) FILTER (WHERE part >= 0))
FROM (SELECT part, concat_ws(' ', class, oid, part, by) COLLATE "C" FROM written) w (part, line)`

// rowsOf is the part of [catalogQuery] for catalogs with one row for each thing.
func rowsOf(catalogs ...string) (union string) {
	for _, catalog := range catalogs {
		union += fmt.Sprintf("\n  UNION ALL SELECT class, p.oid, 0, x.xmin::text FROM parts p JOIN %[1]s x ON x.oid = p.oid WHERE class = '%[1]s'::regclass", catalog)
	}
	return union
}

// ErrChanged says that the shard's structure or grants were changed since both sides were compared.
var ErrChanged = errors.New("somebody has changed the shard's structure or grants, or refreshed a view, in the meantime")

// Catalogs are hashes of the source's catalog rows of a shard.
type Catalogs struct {
	all    string
	Behind string // without what the move itself changes of the old schema
}

// ReadCatalogs reads them of a schema. With views a materialised view counts as changed once it is refreshed.
func ReadCatalogs(ctx context.Context, source *pgx.Conn, schema string, views bool) (now Catalogs, err error) {
	batch := &pgx.Batch{}
	now.queue(batch, schema, views)
	err = source.SendBatch(ctx, batch).Close()
	return now, err
}

// queue makes a batch read the hashes. It makes Postgres use the indexes of the catalogs: writers may be waiting, and a host has as many rows in its
// catalogs as its shards have parts.
func (c *Catalogs) queue(batch *pgx.Batch, schema string, views bool) {
	batch.Queue(`SELECT set_config(name, 'off', true) FROM unnest('{enable_seqscan,enable_hashjoin,enable_mergejoin,enable_bitmapscan}'::text[]) name`)
	batch.Queue(`SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`)
	batch.Queue(catalogQuery, schema, views).QueryRow(func(row pgx.Row) error { return row.Scan(&c.all, &c.Behind) })
}

// queueMakers makes a batch name the transactions that are about to make something in a schema: what can have rows is made under a lock of the schema.
func queueMakers(batch *pgx.Batch, schema string, makers *string) {
	const query = `
		SELECT coalesce(string_agg(coalesce('process ' || pid, 'a prepared transaction'), ', '), '') FROM pg_locks
		WHERE locktype = 'object' AND classid = 'pg_namespace'::regclass AND objid = to_regnamespace($1) AND pid IS DISTINCT FROM pg_backend_pid()
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	batch.Queue(query, schema).QueryRow(func(row pgx.Row) error { return row.Scan(makers) })
}

// Unchanged returns [ErrChanged] unless the source's catalogs have of a schema what they had when c was read, and no transaction is about to change
// that. It takes another session than the one that locks the shard, which changes catalog rows for that.
func (c Catalogs) Unchanged(ctx context.Context, source *pgx.Conn, schema string, views bool) error {
	var makers string
	var now Catalogs
	batch := &pgx.Batch{}
	queueMakers(batch, schema, &makers)
	now.queue(batch, schema, views) // after the locks: a transaction that no longer holds one has committed
	err := source.SendBatch(ctx, batch).Close()
	switch {
	case err != nil:
		return err
	case makers != "":
		return fmt.Errorf("%w: %s is at it", ErrChanged, makers)
	case now != c:
		return ErrChanged
	}
	return nil
}

// UnchangedBehind returns [ErrChanged] if the schema behind the fence of a move was changed since it was compared. Locks do not keep others from making things in a schema,
// or from changing functions and grants, until its new name is committed. From then on they do not find it by its name.
func UnchangedBehind(ctx context.Context, source *pgx.Conn, m ledger.Move) error {
	var makers, fenced string
	var now Catalogs
	batch := &pgx.Batch{}
	queueMakers(batch, m.OldSchema(), &makers)
	now.queue(batch, m.OldSchema(), true)
	batch.Queue(`SELECT coalesce(catalogs, '') FROM kiloshard.moves WHERE id = $1`, m.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&fenced) })
	err := source.SendBatch(ctx, batch).Close()
	if err == nil && fenced != "" && (makers != "" || now.Behind != fenced) { // else there is nothing to compare with
		err = ErrChanged
	}
	return err
}
