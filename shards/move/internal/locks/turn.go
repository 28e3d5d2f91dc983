package locks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/sql"
)

// hostTurn is the second key of the advisory lock of a host's cutovers; no shard has that number.
const hostTurn = 1 << 20

// turnLimit is how long a cutover waits for the others of its hosts. Any role can take the lock, so the cutover goes on without it then; at worst callers
// of several shards wait at a time.
const turnLimit = 10 * time.Second

// Turn lets the cutovers of a host run one after the other.
type Turn struct{ conns []*pgx.Conn }

// Take returns when no other cutover has the turn of one of the sessions' hosts, or after 10 s. The turn lasts until [Turn.End], or as long as the sessions.
func (t *Turn) Take(ctx context.Context, hosts ...*pgx.Conn) error {
	const longest = 20 * time.Millisecond
	began := time.Now()
	return wait.Until(ctx, 0, longest, nil, func() (bool, error) {
		for _, conn := range hosts {
			var got bool
			if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, sql.ShardLock, hostTurn).Scan(&got); err != nil {
				return false, err
			}
			if !got { // a wait with one of two could be a deadlock
				t.End(ctx)
				return time.Since(began) > turnLimit, nil
			}
			t.conns = append(t.conns, conn)
		}
		return true, nil
	})
}

// End lets the next cutover go on. It works after ctx has ended.
func (t *Turn) End(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CancelLimit)
	defer cancel()
	for _, conn := range t.conns {
		if !conn.IsClosed() {
			_, _ = conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2)`, sql.ShardLock, hostTurn) // else the lock ends with the session
		}
	}
	t.conns = nil
}
