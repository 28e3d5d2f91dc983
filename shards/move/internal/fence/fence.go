// Package fence makes a host refuse a shard: a schema of the shard's name whose use raises where the shard is.
//
// The fence of a source is made under a name of its own before the cutover, so that two renames are all that is left to do while writers wait. Until the
// switch the copy on the target is fenced as well, by what [Hide] and [Guard] make.
package fence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/sql"
)

// createScript makes the fence under a name of its own: a schema that has, in place of each table and view, a view of the same
// columns whose use raises where the shard went, and functions and procedures that do so, too, next_id among them.
//
// They raise when Postgres plans a statement, also one that writes: the client has received no part of an answer, and can send the statement
// elsewhere. For an INSERT the default of a last column raises, since triggers do not fire with session_replication_role = replica. The name of that column
// stands in the error of a COPY without a list of columns.
var createScript = `
DO $kiloshard$
DECLARE
  fence CONSTANT name := '%[1]s';
  shard CONSTANT int := %[3]d;
  raises CONSTANT text := 'kiloshard.shard_has_moved(%[3]d)';
  r record;
BEGIN
  SET LOCAL check_function_bodies = off; -- plpgsql refuses two arguments of one name
  EXECUTE format('CREATE SCHEMA %%I', fence);
  FOR r IN
    SELECT format('%%I.%%I', fence, c.relname) AS view,
      (
        SELECT quote_ident(last) FROM generate_series(0, 1600) i, format('shard %%s has moved%%s', shard, repeat('!', i)) last
        WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = last) ORDER BY i LIMIT 1
      ) AS last,
      string_agg(format('NULL::%%s AS %%I, ', format_type(a.atttypid, a.atttypmod), a.attname), '' ORDER BY a.attnum) FILTER (WHERE a.attnum IS NOT NULL) AS columns
    FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE ` + catalog.In("pg_class", "c.oid", "'%[2]s'::regnamespace") + ` AND c.relkind IN ('r', 'p', 'v', 'm', 'f') GROUP BY c.oid
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
    WHERE ` + catalog.In("pg_proc", "p.oid", "'%[2]s'::regnamespace") + ` AND p.prokind IN ('f', 'p') AND p.proargdefaults IS NULL AND NOT EXISTS (
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

// Only returns the statement that fails if a fence has something else that can have rows.
func Only(schema string) string {
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
`, schema, catalog.In("pg_class", "oid", "to_regnamespace('"+schema+"')"))
}

// Drop returns the statements that drop a fence, unless it has something else that can have rows.
func Drop(schema string) string {
	return Only(schema) + "DROP SCHEMA IF EXISTS " + schema + " CASCADE;\n"
}

// Create makes the fence of a move in front of a schema, under a name of its own: nothing is fenced yet.
func Create(ctx context.Context, host *pgx.Conn, m ledger.Move, schema string) error {
	return session.Run(ctx, host, create(m, schema))
}

// Try makes the fence of a move on its source, and rolls that back.
func Try(ctx context.Context, source *pgx.Conn, m ledger.Move) error {
	return session.Run(ctx, source, "BEGIN;"+create(m, m.Schema)+"; ROLLBACK")
}

// CreateInPlace makes the fence of a move in front of a schema, and gives it the shard's name.
func CreateInPlace(ctx context.Context, host *pgx.Conn, m ledger.Move, schema string) error {
	return session.Run(ctx, host, create(m, schema)+fmt.Sprintf("; ALTER SCHEMA %s RENAME TO %s", m.FenceSchema(), m.Schema))
}

func create(m ledger.Move, schema string) string {
	return Drop(m.FenceSchema()) + fmt.Sprintf(createScript, m.FenceSchema(), schema, m.Shard, sql.FenceMark, m.ID)
}

// Raise makes the source refuse and writes the step fenced, in a transaction that holds the locks of all tables and sequences. The caller calls [Note] next.
func Raise(ctx context.Context, tx pgx.Tx, m ledger.Move) error {
	_, err := tx.Exec(ctx, `SELECT kiloshard.fence($1, $2)`, m.ID, m.Schema)
	return err
}

// Noted is what the ledger keeps of a fence, besides its sequences.
type Noted struct {
	Carried  string          // the snapshot of the target when it had all rows; empty if it was not taken
	Back     *ledger.WayBack // nil for none
	Catalogs string          // a hash of the catalogs' rows of the shard; empty for none
}

// Note writes it into the source's ledger, in the transaction of [Raise], and returns the sequences as they were before the fence.
func Note(ctx context.Context, tx pgx.Tx, m ledger.Move, noted Noted) (held []Sequence, err error) {
	const query = `UPDATE kiloshard.moves SET carried = $2, back = $3, catalogs = nullif($4, '') WHERE id = $1 RETURNING sequences`
	err = tx.QueryRow(ctx, query, m.ID, noted.Carried, noted.Back, noted.Catalogs).Scan(&held)
	return held, err
}

// RaiseAlone returns the statements that take all locks of the shard, make the source refuse, and write the step, with nothing else to note.
func RaiseAlone(m ledger.Move) string {
	return locks.Exclusive(m.Schema) + fmt.Sprintf(";\nSELECT kiloshard.fence('%s', '%s');\n", m.ID, m.Schema)
}

// Parts is the beginning of an expression for the OIDs of what is in a schema. The OID of the schema and a parenthesis follow.
const Parts = `(SELECT array_agg(objid) FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = `

// IsUp reports whether the source is known to refuse. It waits for a transaction that is about to commit the fence, also after ctx has ended.
func IsUp(ctx context.Context, source *pgx.Conn, m ledger.Move) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CleanUpLimit)
	defer cancel()
	var step ledger.Step
	err := source.QueryRow(ctx, `SELECT step FROM kiloshard.moves WHERE id = $1 FOR UPDATE`, m.ID).Scan(&step)
	return err == nil && step == ledger.Fenced
}

// Lower returns the statement that takes the fence of a move down on its own host. The caller writes the ledger.
func Lower(m ledger.Move) string {
	return fmt.Sprintf("SELECT kiloshard.unfence('%s', '%s');\n", m.ID, m.Schema)
}

// TakeDown undoes what [Raise] did, and writes the step. The map must name the source, and must not be about to name the target.
func TakeDown(ctx context.Context, source *pgx.Conn, m ledger.Move, step ledger.Step) error {
	const note = `
DO $kiloshard$ BEGIN
  UPDATE kiloshard.moves SET step = '%s', fenced = NULL WHERE id = '%s' AND outcome IS NULL AND step = '%s' AND mover = pg_backend_pid();
  IF NOT FOUND THEN RAISE 'the ledger has another step, or another mover, by now'; END IF;
END $kiloshard$; COMMIT`
	if err := session.Run(ctx, source, "BEGIN;\n"+Lower(m)+fmt.Sprintf(note, step, m.ID, ledger.Fenced)); err != nil {
		return fmt.Errorf("taking the fence down on %s: %w", m.Source, err)
	}
	return nil
}
