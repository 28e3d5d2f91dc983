package checks

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// sharedFiles returns the migrations that run once a host, whose objects all shards of the host share.
func sharedFiles(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	var there bool
	if err := conn.QueryRow(ctx, `SELECT coalesce(has_table_privilege(to_regclass('kiloshard.ledger'), 'SELECT'), false)`).Scan(&there); err != nil || !there {
		return nil, err
	}
	return session.Texts(ctx, conn, `SELECT file FROM kiloshard.ledger WHERE direction = 'shared' AND current ORDER BY version`)
}

// compareShared finds such migrations of the source that have not run on the target.
func (s *Shard) compareShared(ctx context.Context, conn *pgx.Conn, f *Found) error {
	if len(s.shared) == 0 {
		return nil
	}
	here, err := sharedFiles(ctx, conn)
	for _, file := range s.shared {
		if err == nil && !slices.Contains(here, file) {
			f.problem("migration %s, which runs once a host, has not run there: expected kiloshard migrate up first", file)
		}
	}
	return err
}
