package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// The first pause between two attempts to get a shard's lock, and the longest; each is twice as long as the one before.
const (
	shardPollFirst = 2 * time.Millisecond
	shardPollLast  = 50 * time.Millisecond
)

// endWhenIdle has the server end a session that holds a shard's lock and is not heard of any more, as when the network
// to its program broke down, or the program's machine. One that is heard of is never idle for long.
const endWhenIdle = "set idle_session_timeout = '1min'"

// ErrLockHeld says that a shard's lock is held by a role that may not migrate the shard. Anybody who can connect can take
// such a lock; the error names the process.
var ErrLockHeld = errors.New("the shard's lock is held by somebody who may not migrate it")

// lockShard takes a shard's lock for the session, until [session.unlock].
//
// It asks again and again, for the reason given at [session.lockOutTern]: whoever holds the lock may be at a CREATE
// INDEX CONCURRENTLY, which would wait for the snapshot of a statement that waits for the lock.
func (s *session) lockShard(ctx context.Context, n shards.Number, schema string) error {
	return s.poll(ctx, fmt.Sprintf("%s; select pg_catalog.pg_try_advisory_lock(%d, %d)", endWhenIdle, sql.ShardLock, n), n, schema)
}

// awaitShard returns when a shard's lock was free for a moment.
func (s *session) awaitShard(ctx context.Context, n shards.Number, schema string) error {
	return s.poll(ctx, fmt.Sprintf("select pg_catalog.pg_try_advisory_xact_lock(%d, %d)", sql.ShardLock, n), n, schema)
}

// poll runs a query until it says true. It returns [ErrMoving] when a mover has the lock, and [ErrLockHeld] when whoever has the lock is not another run, which would
// end some day.
func (s *session) poll(ctx context.Context, query string, n shards.Number, schema string) error {
	for pause := shardPollFirst; ; pause = min(2*pause, shardPollLast) {
		got, err := s.value(ctx, query)
		if err != nil || got == "t" {
			return err
		}
		if pause == shardPollLast {
			if err := s.checkHolder(ctx, n, schema); err != nil {
				return err
			}
			if moving, err := s.moving(ctx); err != nil || moving.Has(n) {
				return cmp.Or(err, ErrMoving)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-fanout.Interrupted(ctx):
			return fmt.Errorf("interrupted while another run was at work in the shard%s", s.shardHolder(ctx, n))
		}
	}
}

// checkHolder returns [ErrLockHeld] if the role that holds a shard's lock may not create anything in its schema.
func (s *session) checkHolder(ctx context.Context, n shards.Number, schema string) error {
	query := fmt.Sprintf(`
		select coalesce(string_agg(format('process %%s, role %%s', a.pid, a.usename), '; '), '')
		from pg_catalog.pg_locks l
		join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
		join pg_catalog.pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.classid::bigint = %d and l.objid::bigint = %d
		  and not pg_catalog.has_schema_privilege(a.usesysid, '%s', 'create')`, sql.ShardLock, n, schema)
	holder, err := s.value(ctx, query)
	if err == nil && holder != "" {
		err = fmt.Errorf("%w: %s", ErrLockHeld, holder)
	}
	return err
}

// shardHolder says who holds a shard's lock, as far as it can be told.
func (s *session) shardHolder(ctx context.Context, n shards.Number) string {
	holder, err := s.value(ctx, fmt.Sprintf(`
		select coalesce(string_agg(format(': process %%s (%%s, %%s): %%s', l.pid, coalesce(nullif(a.application_name, ''), 'without a name'),
			a.state, left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)), ''), '')
		from pg_catalog.pg_locks l
		join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
		left join pg_catalog.pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.classid::bigint = %d and l.objid::bigint = %d`, sql.ShardLock, n))
	if err != nil {
		return ""
	}
	return holder
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
		neutral, sql.ShardLock, n, int64(ternLock))
	if s.conn.TxStatus() != 'I' {
		query = "rollback; " + query
	}
	if _, err := s.conn.Exec(ctx, query).ReadAll(); err != nil {
		s.conn.Close(ctx)
	}
}
