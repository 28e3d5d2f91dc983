package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// The first pause between two attempts to get a shard's lock, and the longest; each is twice as long as the one before.
const (
	shardPollFirst = 2 * time.Millisecond
	shardPollLast  = 50 * time.Millisecond
)

// endWhenIdle has the server end a session that holds a shard's lock and is not heard of any more, as when the network
// to its program broke down, or the program's machine. One that is heard of is never idle for long.
const endWhenIdle = "set idle_session_timeout = '1min'"

// lockShard takes a shard's lock for the session, until [session.unlock].
//
// It asks again and again, for the reason given at [session.lockOutTern]: whoever holds the lock may be at a CREATE
// INDEX CONCURRENTLY, which would wait for the snapshot of a statement that waits for the lock.
func (s *session) lockShard(ctx context.Context, n shards.Number) error {
	return s.poll(ctx, fmt.Sprintf("%s; select pg_catalog.pg_try_advisory_lock(%d, %d)", endWhenIdle, lockClass, n))
}

// awaitShard returns when a shard's lock was free for a moment.
func (s *session) awaitShard(ctx context.Context, n shards.Number) error {
	return s.poll(ctx, fmt.Sprintf("select pg_catalog.pg_try_advisory_xact_lock(%d, %d)", lockClass, n))
}

// poll runs a query until it says true.
func (s *session) poll(ctx context.Context, query string) error {
	for pause := shardPollFirst; ; pause = min(2*pause, shardPollLast) {
		got, err := s.value(ctx, query)
		if err != nil || got == "t" {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unlock lets go of a shard's lock, and of tern's, and makes the session fit for the next shard, or closes it.
// It does so also when ctx has ended.
func (s *session) unlock(ctx context.Context, n shards.Number) {
	s.ternLock = false
	if s.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	query := fmt.Sprintf("%s; select pg_catalog.pg_advisory_unlock(%d, %d), pg_catalog.pg_advisory_unlock_shared(%d)",
		neutral, lockClass, n, int64(ternLock))
	if s.conn.TxStatus() != 'I' {
		query = "rollback; " + query
	}
	if _, err := s.conn.Exec(ctx, query).ReadAll(); err != nil {
		s.conn.Close(ctx)
	}
}
