package checks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/large"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// largeOwnersQuery names the roles that own large objects.
const largeOwnersQuery = `SELECT DISTINCT pg_get_userbyid(lomowner)::text FROM pg_largeobject_metadata WHERE oid = ANY ($1)`

// largeRolesQuery names the roles that own large objects or may use them.
const largeRolesQuery = largeOwnersQuery + `
UNION SELECT pg_get_userbyid(a.grantee)::text FROM pg_largeobject_metadata, aclexplode(lomacl) a WHERE oid = ANY ($1) AND a.grantee <> 0`

// largeObjects finds the large objects that the shard refers to.
func (s *Shard) largeObjects(ctx context.Context, conn *pgx.Conn) error {
	columns, err := large.Columns(ctx, conn, s.Schema)
	if err != nil || columns == "" {
		return err
	}
	foreign := `
		SELECT true, format('role %I does not own large object %s: expected its owner', current_user, oid) FROM pg_largeobject_metadata
		WHERE NOT pg_has_role(lomowner, 'usage') AND oid IN (` + columns + `)`
	before := len(s.Problems)
	if err := s.query(ctx, conn, foreign, pgx.QueryExecModeExec); err != nil || len(s.Problems) > before {
		return err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		s.large, err = large.Find(ctx, tx, columns)
		return err
	})
	if err != nil || len(s.large) == 0 {
		return err
	}
	for _, o := range s.large {
		s.apart += o.Size
	}
	s.note("%d large objects move, too: who writes to one without a table of the shard is not held up; those on the source stay until lo_unlink or vacuumlo", len(s.large))
	if s.largeOwners, err = session.Texts(ctx, conn, largeOwnersQuery, large.OIDs(s.large)); err == nil {
		s.largeRoles, err = session.Texts(ctx, conn, largeRolesQuery, large.OIDs(s.large))
	}
	return err
}

// largeOnTarget finds large objects of the target that have the OIDs of the shard's.
func (s *Shard) largeOnTarget(ctx context.Context, conn *pgx.Conn, f *Found) error {
	const query = `
		SELECT true, format('large objects %s%s are there already, and the shard refers to such numbers: expected none, see lo_unlink and vacuumlo', string_agg(oid::text, ', ') FILTER (WHERE n <= 3), CASE WHEN count(*) > 3 THEN ' and others' ELSE '' END)
		FROM (SELECT oid, row_number() OVER (ORDER BY oid) FROM pg_largeobject_metadata WHERE oid = ANY ($1)) o (oid, n) HAVING count(*) > 0`
	return f.query(ctx, conn, query, large.OIDs(s.large))
}
