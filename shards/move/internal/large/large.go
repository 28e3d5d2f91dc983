// Package large copies the large objects that a shard refers to. They are in no schema: all of a database share their numbers, and logical
// replication knows nothing of them.
package large

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Columns returns a query for the numbers of all large objects that the columns of a schema's tables refer to: what is of type oid, or of
// a domain over it, and is the number of one. It is empty if there is no such column.
func Columns(ctx context.Context, conn Querier, schema string) (string, error) {
	const query = `
		SELECT coalesce(string_agg(format('SELECT DISTINCT m.oid FROM ONLY %I.%I t JOIN pg_largeobject_metadata m ON m.oid = t.%I', $1::text, c.relname, a.attname), ' UNION '), '')
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
		WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND 'oid'::regtype IN (t.oid, t.typbasetype)
			AND has_table_privilege(c.oid, 'SELECT')`
	var columns string
	err := conn.QueryRow(ctx, query, schema).Scan(&columns)
	return columns, err
}

// Querier is a session or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Object is a large object.
type Object struct {
	OID  uint32
	Size int64 // bytes
}

// Find returns the objects that a query of [Columns] finds. It leaves them open until the transaction ends.
func Find(ctx context.Context, tx pgx.Tx, columns string) ([]Object, error) {
	const read = 0x40000 // INV_READ
	query := fmt.Sprintf(`SELECT oid, lo_lseek64(lo_open(oid, %d), 0, 2) FROM (%s) o (oid) ORDER BY 1`, read, columns)
	rows, err := tx.Query(ctx, query, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Object])
}

// OIDs returns the numbers of objects.
func OIDs(objects []Object) []uint32 {
	all := make([]uint32, len(objects))
	for i, o := range objects {
		all[i] = o.OID
	}
	return all
}

// rightsQuery writes the owners, grants and comments of objects as statements.
const rightsQuery = `
WITH o AS (SELECT * FROM pg_largeobject_metadata WHERE oid = ANY ($1))
SELECT format('ALTER LARGE OBJECT %s OWNER TO %I', oid, pg_get_userbyid(lomowner)) FROM o
UNION ALL
SELECT format('GRANT %s ON LARGE OBJECT %s TO %s%s', a.privilege_type, o.oid, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
  CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) FROM o, aclexplode(o.lomacl) a WHERE a.grantee <> o.lomowner
UNION ALL
SELECT format('COMMENT ON LARGE OBJECT %s IS %L', oid, obj_description(oid, 'pg_largeobject')) FROM o WHERE obj_description(oid, 'pg_largeobject') IS NOT NULL`

// Copy makes objects under the same numbers on another host, where there must be none of them, and compares what it has written.
func Copy(ctx context.Context, from, to pgx.Tx, objects []Object) error {
	if _, err := to.Exec(ctx, `SELECT lo_create(o) FROM unnest($1::oid[]) o`, OIDs(objects)); err != nil {
		return err
	}
	for batch := range batches(objects) {
		want, err := batch.read(ctx, from)
		if err != nil {
			return err
		}
		if _, err := to.Exec(ctx, `SELECT lo_put(o, at, data) FROM unnest($1::oid[], $2::bigint[], $3::bytea[]) p (o, at, data)`, batch.oids, batch.offsets, want); err != nil {
			return err
		}
		have, err := batch.read(ctx, to)
		if err != nil {
			return err
		}
		for i := range want {
			if !bytes.Equal(want[i], have[i]) {
				return fmt.Errorf("large object %d differs after it was copied", batch.oids[i])
			}
		}
	}
	rows, err := from.Query(ctx, rightsQuery, OIDs(objects))
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	_, err = to.Conn().PgConn().Exec(ctx, strings.Join(statements, ";\n")).ReadAll()
	return err
}

// Replace removes the large objects that a move has made on its target, by the target's ledger, and notes there the numbers of those that it is about to make.
func Replace(ctx context.Context, to pgx.Tx, move string, by []uint32) error {
	const query = `
		WITH made AS (SELECT unnest(large_objects) AS oid FROM kiloshard.moves WHERE id = $1 AND side = 'target' AND outcome IS NULL),
			noted AS (UPDATE kiloshard.moves SET large_objects = $2::oid[] WHERE id = $1 AND side = 'target' AND outcome IS NULL)
		SELECT count(lo_unlink(oid)) FROM made JOIN pg_largeobject_metadata USING (oid)`
	_, err := to.Exec(ctx, query, move, by)
	return err
}
