package fence

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Newcomers describes the objects of the old schema that were not there when it was fenced: a transaction that began to
// create a function before the fence can commit after it.
func Newcomers(ctx context.Context, source *pgx.Conn, m ledger.Move) ([]string, error) {
	const query = `
		SELECT pg_describe_object(d.classid, d.objid, 0)
		FROM kiloshard.moves v JOIN pg_depend d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = to_regnamespace($2)
		WHERE v.id = $1 AND v.side = 'source' AND NOT d.objid = ANY (v.parts) ORDER BY 1`
	return session.Texts(ctx, source, query, m.ID, m.OldSchema())
}
