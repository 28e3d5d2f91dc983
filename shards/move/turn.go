package move

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/sql"
)

// hostTurn is the second key of the advisory lock that cutovers of one host take one after the other; no shard has that number.
const hostTurn = 1 << 20

// turnLimit is how long a cutover waits for the others of its hosts. Anybody can take the lock, so it goes on without it then: all that is
// lost is that callers of several shards wait at a time.
const turnLimit = 10 * time.Second

// takeTurn returns when no other cutover has the turn of either host, or after turnLimit. The turn lasts until [job.endTurn], or as long as
// the sessions.
func (j *job) takeTurn(ctx context.Context) error {
	const longest = 20 * time.Millisecond
	began := time.Now()
	return wait.Until(ctx, 0, longest, nil, func() (bool, error) {
		for _, conn := range []*pgx.Conn{j.from, j.to} {
			var got bool
			if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, sql.ShardLock, hostTurn).Scan(&got); err != nil {
				return false, err
			}
			if !got { // none waits with one of two
				j.endTurn(ctx)
				return time.Since(began) > turnLimit, nil
			}
			j.turns = append(j.turns, conn)
		}
		return true, nil
	})
}

// endTurn lets the next cutover go on. A session that was lost has no lock any more.
func (j *job) endTurn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CancelLimit)
	defer cancel()
	for _, conn := range j.turns {
		if !conn.IsClosed() {
			_, _ = conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2)`, sql.ShardLock, hostTurn) // else it ends with the session
		}
	}
	j.turns = nil
}
