package move

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// lockedFor is how long a copy waits for a lock before it asks who has it.
const lockedFor = time.Second

// despiteLocks calls fn, which waits for a lock of the shard for lockedFor, until it no longer fails for want of it, and says who has it.
func (j *job) despiteLocks(ctx context.Context, conn *pgx.Conn, fn func() error) error {
	began, told := time.Now(), time.Time{}
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		err := fn()
		if session.Code(err) != "55P03" {
			return err == nil, err
		}
		const query = `
			SELECT DISTINCT coalesce('process ' || l.pid || coalesce(', ' || a.state, ''), 'a prepared transaction')
			FROM pg_locks l JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_stat_activity a ON a.pid = l.pid
			WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.granted AND l.mode = 'AccessExclusiveLock' AND c.relnamespace = to_regnamespace($1)`
		holders, asked := session.Texts(ctx, conn, query, j.Schema)
		switch {
		case asked != nil:
			return false, asked
		case j.outOfPatience(began):
			return false, fmt.Errorf("no lock within %s, which is held by %s: %w", j.cfg.Patience, strings.Join(holders, "; "), err)
		case time.Since(told) > wait.Interval:
			told = time.Now()
			j.event("waits for a lock of %s", strings.Join(holders, "; "))
		}
		return false, nil
	})
}
