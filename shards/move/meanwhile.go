package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// catalogQuery hashes what the catalogs say of a schema and all that is in it. Each catalog row is known by the transaction that wrote
// it, but for those of pg_class, which TRUNCATE writes, too, and that of the schema, which the fence gives another name. With $2 a
// materialised view counts as changed once it is refreshed. The second hash is without that, and without what the move itself
// changes of the old schema: sequences, replica identities, publications.
var catalogQuery = `
WITH RECURSIVE parts (class, oid) AS (
  SELECT 'pg_namespace'::regclass::oid, oid FROM pg_namespace WHERE nspname = $1
  UNION
  SELECT d.classid, d.objid FROM parts p JOIN pg_depend d ON d.refclassid = p.class AND d.refobjid = p.oid
  WHERE d.deptype IN ('a', 'i', 'P', 'S') OR p.class = 'pg_namespace'::regclass
), written (class, oid, part, by) AS (
  SELECT class, oid, CASE WHEN class IN ('pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass) THEN -1 ELSE 0 END, '' FROM parts
  UNION ALL SELECT class, p.oid, 0, concat_ws(' ', nspowner, nspacl) FROM parts p JOIN pg_namespace n ON n.oid = p.oid WHERE class = 'pg_namespace'::regclass
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

// errMeanwhile says that somebody has changed the shard, or who may use it, since both sides were compared.
var errMeanwhile = errors.New("somebody has changed the shard's structure or grants, or refreshed a view, in the meantime")

// catalogs are hashes of what the source's catalogs say of the shard.
type catalogs struct {
	all    string
	behind string // all that the move leaves as it is behind its fence
}

// readCatalogs reads them of a schema.
func (j *job) readCatalogs(ctx context.Context, schema string) (now catalogs, err error) {
	batch := &pgx.Batch{}
	j.queueCatalogs(batch, schema, &now)
	err = j.from.SendBatch(ctx, batch).Close()
	return now, err
}

// queueCatalogs has a batch read them. Postgres is told to use their indexes: writers may be waiting, and a host has as many rows in its
// catalogs as its shards have parts.
func (j *job) queueCatalogs(batch *pgx.Batch, schema string, now *catalogs) {
	batch.Queue(`SELECT set_config(name, 'off', true) FROM unnest('{enable_seqscan,enable_hashjoin,enable_mergejoin,enable_bitmapscan}'::text[]) name`)
	batch.Queue(`SELECT set_config('plan_cache_mode', 'force_generic_plan', true)`)
	batch.Queue(catalogQuery, schema, j.again < maxPasses).QueryRow(func(row pgx.Row) error { return row.Scan(&now.all, &now.behind) })
}

// queueMakers has a batch name those who are about to make something in a schema: what can have rows is made under a lock of the schema.
func queueMakers(batch *pgx.Batch, schema string, makers *string) {
	const query = `
		SELECT coalesce(string_agg(coalesce('process ' || pid, 'a prepared transaction'), ', '), '') FROM pg_locks
		WHERE locktype = 'object' AND classid = 'pg_namespace'::regclass AND objid = to_regnamespace($1) AND pid IS DISTINCT FROM pg_backend_pid()
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	batch.Queue(query, schema).QueryRow(func(row pgx.Row) error { return row.Scan(makers) })
}

// isAsCompared returns errMeanwhile unless the source's catalogs say of the shard what they said when [job.verifyStructure] began, and nobody
// is about to change that. The session that locks the shard changes them for that, so another one asks.
func (j *job) isAsCompared(ctx context.Context) error {
	var makers string
	var now catalogs
	batch := &pgx.Batch{}
	queueMakers(batch, j.Schema, &makers)
	j.queueCatalogs(batch, j.Schema, &now) // after the locks: who no longer holds one has committed
	err := j.from.SendBatch(ctx, batch).Close()
	switch {
	case err != nil:
		return err
	case makers != "":
		return fmt.Errorf("%w: %s is at it", errMeanwhile, makers)
	case now != j.compared:
		return errMeanwhile
	}
	return nil
}

// unlessAsCompared calls compare if somebody has changed the shard since it was compared. A job that refreshes views all the time does not
// keep it up for ever.
func (j *job) unlessAsCompared(ctx context.Context, compare func(context.Context) error) error {
	now, err := j.readCatalogs(ctx, j.Schema)
	if err != nil || now == j.compared {
		return err
	}
	j.again++
	j.event("compares again: %v", errMeanwhile)
	return compare(ctx)
}

// orMeanwhile returns the error of a cutover, or errMeanwhile if that may be its cause: a table that has come since has no copy.
func (j *job) orMeanwhile(ctx context.Context, err error) error {
	if err == nil || mayTryAgain(err) || !errors.Is(j.isAsCompared(ctx), errMeanwhile) {
		return err
	}
	return fmt.Errorf("%w: %w", errMeanwhile, err)
}

// isAsFenced returns errMeanwhile unless all that is behind the fence is what was compared. Locks keep nobody from making things in a schema,
// or from changing functions and grants, until its new name is committed. From then on nobody finds it by its name.
func (j *job) isAsFenced(ctx context.Context) error {
	var makers, fenced string
	var now catalogs
	batch := &pgx.Batch{}
	queueMakers(batch, j.moved(), &makers)
	j.queueCatalogs(batch, j.moved(), &now)
	batch.Queue(`SELECT coalesce(catalogs, '') FROM kiloshard.moves WHERE id = $1`, j.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&fenced) })
	err := j.from.SendBatch(ctx, batch).Close()
	if err == nil && fenced != "" && (makers != "" || now.behind != fenced) { // an older release has not noted it
		err = errMeanwhile
	}
	return err
}

// isServed reports whether the other side takes writes already, or the map has the shard there, because of another mover, which has fenced it.
// That one may also have begun to take the move back.
func (j *job) isServed(ctx context.Context) (bool, error) {
	if j.mapped != nil { // this one has
		return false, nil
	}
	if err := j.noteCutover(ctx, j.to); err != nil {
		return false, err
	}
	if open, err := j.isOpen(ctx); err != nil || open {
		return open, err
	}
	now, err := j.newest(ctx)
	return err == nil && j.notOnTarget(now) != nil, err
}

// unlessAsFenced takes the fence down and reports so if somebody has changed the shard while it was made. It does not if the shard is served
// already, nor if the source does not answer, since nobody is served meanwhile.
func (j *job) unlessAsFenced(ctx context.Context) (down bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, switchLimit)
	defer cancel()
	served, err := j.isServed(ctx)
	if err != nil {
		return false, err
	}
	asking, asked := context.WithTimeout(ctx, answerLimit)
	defer asked()
	changed := j.isAsFenced(asking)
	if changed != nil && j.from.IsClosed() && j.reconnect(asking) == nil {
		changed = j.isAsFenced(asking)
	}
	switch {
	case changed == nil:
		return false, nil
	case served || !errors.Is(changed, errMeanwhile):
		j.event("note: schema %s on %s may not be what was compared: %v", j.moved(), j.Source, changed)
		return false, nil
	case j.mapped == nil:
		if err := j.stay(ctx, "is tried again"); err != nil {
			return false, err
		}
	}
	if j.opening != nil { // whoever makes a slot on the target waits for its transactions
		_ = session.Run(ctx, j.opening, "ROLLBACK")
	}
	j.event("tries again: %v", changed)
	return true, j.unfence(ctx, Cutover)
}

// noteLate reports what somebody has committed since in a transaction that had begun before the fence, and which is not on the target.
func (j *job) noteLate(ctx context.Context) error {
	newcomers, err := j.newcomers(ctx, j.from)
	if err != nil {
		return err
	}
	for _, what := range newcomers {
		j.event("note: %s was made while the shard was fenced, and is on %s only", what, j.Source)
	}
	err = j.isAsFenced(ctx)
	if errors.Is(err, errMeanwhile) {
		j.event("note: somebody has changed functions, types or grants of schema %s on %s since the shard was fenced: they are not so on %s", j.moved(), j.Source, j.Target)
		err = nil
	}
	return err
}

// newcomers describes what is in the old schema that was not there when it was fenced: who began to make a function before can commit after.
// An older release has not noted what was there.
func (m Move) newcomers(ctx context.Context, source *pgx.Conn) ([]string, error) {
	const query = `
		SELECT pg_describe_object(d.classid, d.objid, 0)
		FROM kiloshard.moves v JOIN pg_depend d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = to_regnamespace($2)
		WHERE v.id = $1 AND v.side = 'source' AND NOT d.objid = ANY (v.parts) ORDER BY 1`
	return session.Texts(ctx, source, query, m.ID, m.moved())
}
