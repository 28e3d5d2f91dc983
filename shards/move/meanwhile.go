package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// catalogQuery hashes what the catalogs say of a schema and all that is in it. Each catalog row is known by the transaction that wrote
// it, but for those of pg_class, which TRUNCATE writes, too. With $2 a materialised view counts as changed once it is refreshed.
var catalogQuery = `
WITH RECURSIVE parts (class, oid) AS (
  SELECT 'pg_namespace'::regclass::oid, oid FROM pg_namespace WHERE nspname = $1
  UNION
  SELECT d.classid, d.objid FROM parts p JOIN pg_depend d ON d.refclassid = p.class AND d.refobjid = p.oid
  WHERE d.deptype IN ('a', 'i') OR p.class = 'pg_namespace'::regclass
), written (class, oid, part, by) AS (
  SELECT class, oid, 0, '' FROM parts
  UNION ALL
  SELECT class, p.oid, 0, concat_ws(' ', relname, relnamespace, relowner, relam, reltablespace, relpersistence, relkind, relnatts, relchecks, relrowsecurity, relforcerowsecurity,
    relreplident, relacl, reloptions, CASE WHEN relkind = 'm' AND $2 THEN relfilenode END) FROM parts p JOIN pg_class c ON c.oid = p.oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, oid, attnum, a.xmin::text FROM parts JOIN pg_attribute a ON attrelid = oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, oid, 0, i.xmin::text FROM parts JOIN pg_index i ON indexrelid = oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, oid, 0, s.xmin::text FROM parts JOIN pg_sequence s ON seqrelid = oid WHERE class = 'pg_class'::regclass
  UNION ALL SELECT class, p.oid, e.oid::int, e.xmin::text FROM parts p JOIN pg_enum e ON enumtypid = p.oid WHERE class = 'pg_type'::regclass
  UNION ALL SELECT class, oid, objsubid, x.xmin::text FROM parts JOIN pg_description x ON objoid = oid AND classoid = class` +
	rowsOf("pg_namespace", "pg_type", "pg_proc", "pg_constraint", "pg_attrdef", "pg_trigger", "pg_rewrite", "pg_policy", "pg_statistic_ext", "pg_default_acl") + `
)
SELECT md5(string_agg(concat_ws(' ', class, oid, part, by), ',' ORDER BY class, oid, part, by)) FROM written`

// rowsOf is the part of [catalogQuery] for catalogs with one row for each thing.
func rowsOf(catalogs ...string) (union string) {
	for _, catalog := range catalogs {
		union += fmt.Sprintf("\n  UNION ALL SELECT class, p.oid, 0, x.xmin::text FROM parts p JOIN %[1]s x ON x.oid = p.oid WHERE class = '%[1]s'::regclass", catalog)
	}
	return union
}

// errMeanwhile says that somebody has changed the shard, or who may use it, since both sides were compared.
var errMeanwhile = errors.New("somebody has changed the shard's structure or grants, or refreshed a view, in the meantime")

// catalogs returns a hash of what the source's catalogs say of the shard. Postgres is told to use their indexes: writers may be waiting,
// and a host has as many rows in its catalogs as its shards have parts.
func (j *job) catalogs(ctx context.Context) (hash string, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`SELECT set_config(name, 'off', true) FROM unnest('{enable_seqscan,enable_hashjoin,enable_mergejoin,enable_bitmapscan}'::text[]) name`)
	batch.Queue(`SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`)
	batch.Queue(catalogQuery, j.Schema, j.again < maxPasses).QueryRow(func(row pgx.Row) error { return row.Scan(&hash) })
	err = j.from.SendBatch(ctx, batch).Close()
	return hash, err
}

// isAsCompared returns errMeanwhile unless the source's catalogs say of the shard what they said when [job.verifyStructure] began. The
// session that locks the shard changes them for that, so another one asks.
func (j *job) isAsCompared(ctx context.Context) error {
	now, err := j.catalogs(ctx)
	if err == nil && now != j.compared {
		err = errMeanwhile
	}
	return err
}

// erectAsCompared is [job.erect] unless somebody has changed the shard: what is done under the locks takes a while, and they hold up
// nobody who replaces a function or grants something.
func (j *job) erectAsCompared(ctx context.Context, tx pgx.Tx, sequences []sequence) error {
	if err := j.isAsCompared(ctx); err != nil {
		return err
	}
	return j.erect(ctx, tx, sequences)
}

// unlessAsCompared calls compare if somebody has changed the shard since it was compared. A job that refreshes views all the time does not
// keep it up for ever.
func (j *job) unlessAsCompared(ctx context.Context, compare func(context.Context) error) error {
	err := j.isAsCompared(ctx)
	if errors.Is(err, errMeanwhile) {
		j.again++
		j.event("compares again: %v", err)
		return compare(ctx)
	}
	return err
}
