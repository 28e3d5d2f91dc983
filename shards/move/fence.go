package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// fenceScript makes the fence under a name of its own: a schema that has, in place of each table and view, a view of the same
// columns whose use raises where the shard went, and functions and procedures that do so, too, next_id among them.
//
// They raise when a statement is planned, also one that writes: a client that has had nothing of an answer can send the statement
// elsewhere. What raises for an INSERT is the default of a last column, which counts also where triggers do not fire, with
// session_replication_role = replica. Its name is what a COPY without a list of columns is told that it lacks.
var fenceScript = `
DO $kiloshard$
DECLARE
  fence CONSTANT name := '%[1]s';
  shard CONSTANT int := %[3]d;
  raises CONSTANT text := 'kiloshard.shard_has_moved(%[3]d)';
  r record;
BEGIN
  SET LOCAL check_function_bodies = off; -- plpgsql takes no two arguments of one name
  EXECUTE format('CREATE SCHEMA %%I', fence);
  FOR r IN
    SELECT format('%%I.%%I', fence, c.relname) AS view,
      (
        SELECT quote_ident(last) FROM generate_series(0, 1600) i, format('shard %%s has moved%%s', shard, repeat('!', i)) last
        WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = last) ORDER BY i LIMIT 1
      ) AS last,
      string_agg(format('NULL::%%s AS %%I, ', format_type(a.atttypid, a.atttypmod), a.attname), '' ORDER BY a.attnum) FILTER (WHERE a.attnum IS NOT NULL) AS columns
    FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE ` + checks.In("pg_class", "c.oid", "'%[2]s'::regnamespace") + ` AND c.relkind IN ('r', 'p', 'v', 'm', 'f') GROUP BY c.oid
  LOOP
    EXECUTE format('CREATE VIEW %%s AS SELECT %%s NULL::bigint AS %%s FROM %%s', r.view, r.columns, r.last, raises);
    EXECUTE format('ALTER VIEW %%s ALTER %%s SET DEFAULT %%s', r.view, r.last, raises);
    EXECUTE format('CREATE TRIGGER refuse INSTEAD OF INSERT OR UPDATE OR DELETE ON %%s FOR EACH ROW EXECUTE FUNCTION kiloshard.refuse_moved(%%s)', r.view, shard);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %%s TO PUBLIC', r.view); -- ON ALL TABLES reads pg_class whole
  END LOOP;
  FOR r IN
    SELECT CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END AS kind, format('%%I.%%I(%%s)', fence, p.proname, pg_get_function_arguments(p.oid)) AS signature,
      CASE p.prokind WHEN 'f' THEN format('RETURNS %%s IMMUTABLE', pg_get_function_result(p.oid)) END AS attributes
    FROM pg_proc p
    WHERE ` + checks.In("pg_proc", "p.oid", "'%[2]s'::regnamespace") + ` AND p.prokind IN ('f', 'p') AND p.proargdefaults IS NULL AND NOT EXISTS (
      SELECT FROM pg_type t JOIN unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]) || p.prorettype) used (type) ON t.oid = type
      WHERE t.typnamespace = p.pronamespace OR t.typtype = 'p' AND t.typname !~ '^(void|record|any.+)$') -- trigger, internal ...
  LOOP
    EXECUTE format('CREATE %%s %%s %%s LANGUAGE plpgsql AS $f$ BEGIN PERFORM %%s; END $f$', r.kind, r.signature, r.attributes, raises);
  END LOOP;
  EXECUTE format('CREATE VIEW %%I.%[4]s AS SELECT target, fenced FROM kiloshard.moves WHERE id = ''%[5]s''', fence);
  EXECUTE format('GRANT USAGE ON SCHEMA %%I TO PUBLIC', fence);
  EXECUTE format('GRANT SELECT ON %%I.%[4]s TO PUBLIC', fence);
END
$kiloshard$`

// onlyFence returns the statement that fails if somebody has made in a fence what can have rows.
func onlyFence(schema string) string {
	return fmt.Sprintf(`
DO $kiloshard$
DECLARE
  others text;
BEGIN
  SELECT string_agg(pg_describe_object('pg_class'::regclass, oid, 0), ', ') INTO others
  FROM pg_class WHERE %[2]s AND relkind IN ('r', 'p', 'f', 'm', 'S');
  IF others IS NOT NULL THEN
    RAISE '%% is in schema %[1]s, which takes the place of a shard that has moved and is to be dropped: expected nothing there that the move has not made', others;
  END IF;
END
$kiloshard$;
`, schema, checks.In("pg_class", "oid", "to_regnamespace('"+schema+"')"))
}

// dropFence returns the statements that drop a fence, unless somebody has made there what can have rows.
func dropFence(schema string) string {
	return onlyFence(schema) + "DROP SCHEMA IF EXISTS " + schema + " CASCADE;\n"
}

// prepareFence makes the fence, so that two renames are all that is left to do while writers wait.
func (j *job) prepareFence(ctx context.Context) error {
	if err := session.Run(ctx, j.from, j.makeFence(j.Schema)); err != nil {
		return fmt.Errorf("fence on %s: %w", j.Source, err)
	}
	return nil
}

// tryFence makes the fence, and takes it back.
func (j *job) tryFence(ctx context.Context) error {
	return session.Run(ctx, j.from, "BEGIN;"+j.makeFence(j.Schema)+"; ROLLBACK")
}

// makeFence returns the script that makes the fence in front of a schema.
func (m Move) makeFence(of string) string {
	return dropFence(m.fence()) + fmt.Sprintf(fenceScript, m.fence(), of, m.Shard, sql.FenceMark, m.ID)
}

// erect makes the source refuse, in the transaction of tx, which holds the locks of all tables and sequences: the sequences
// are at their ends, the shard has another name, the fence has its name, and the ledger says so.
func (j *job) erect(ctx context.Context, tx pgx.Tx, sequences []sequence) error {
	statements := ""
	for _, s := range sequences {
		statements += s.hold(j.Schema)
	}
	statements += fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s;\nALTER SCHEMA %s RENAME TO %[1]s;", j.Schema, j.moved(), j.fence())
	if _, err := tx.Conn().PgConn().Exec(ctx, statements).ReadAll(); err != nil {
		return err
	}
	back, err := j.wayBackFrom(ctx)
	if err != nil {
		return err
	}
	const query = `
		UPDATE kiloshard.moves SET step = $2, stepped = clock_timestamp(), fenced = clock_timestamp(), sequences = $3, carried = $5, back = $6, error = NULL,
			catalogs = nullif($7, ''), parts = ` + partsOf + `to_regnamespace($8))
		WHERE id = $1 AND outcome IS NULL AND step = $4`
	tag, err := tx.Exec(ctx, query, j.ID, Fenced, sequences, Cutover, j.carried, back, j.compared.behind, j.moved())
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("the ledger of %s has no such move at the cutover any more", j.Source)
	}
	return err
}

// partsOf is the beginning of an expression for what is in a schema. The OID of the schema and a parenthesis follow.
const partsOf = `(SELECT array_agg(objid) FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = `

// isFenced reports whether the source is known to refuse, once nobody is about to make it do so.
func (j *job) isFenced(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CleanUpLimit)
	defer cancel()
	var step Step
	err := j.from.QueryRow(ctx, `SELECT step FROM kiloshard.moves WHERE id = $1 FOR UPDATE`, j.ID).Scan(&step)
	return err == nil && step == Fenced
}

// unfenceScript gives the fence and the schema behind it their names back, and releases the sequences.
func (m Move) unfenceScript(held []sequence) string {
	script := fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s; ALTER SCHEMA %s RENAME TO %[1]s;\n", m.Schema, m.fence(), m.moved())
	for _, s := range held {
		script += s.release(m.Schema)
	}
	return script
}

// unfence undoes what [job.erect] did, and writes the step. The map must name the source, and must not be about to name the target.
func (j *job) unfence(ctx context.Context, step Step) error {
	held, err := heldBy(ctx, j.from, j.ID)
	if err != nil {
		return err
	}
	const note = `
DO $kiloshard$ BEGIN
  UPDATE kiloshard.moves SET step = '%s', fenced = NULL WHERE id = '%s' AND outcome IS NULL AND step = '%s' AND mover = pg_backend_pid();
  IF NOT FOUND THEN RAISE 'the ledger has another step, or another mover, by now'; END IF;
END $kiloshard$; COMMIT`
	script := "BEGIN;\n" + j.unfenceScript(held) + fmt.Sprintf(note, step, j.ID, Fenced)
	if err := session.Run(ctx, j.from, script); err != nil {
		return fmt.Errorf("taking the fence down on %s: %w", j.Source, err)
	}
	j.Step = step
	j.event("unfenced")
	return nil
}
