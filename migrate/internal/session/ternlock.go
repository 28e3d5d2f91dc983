package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards/fanout"
)

// ternLock is the advisory lock that tern holds, exclusively, in each database that it works on.
const ternLock = 9628173550095224

// ErrTernAtWork says that tern's lock was not free in time.
var ErrTernAtWork = errors.New("a tern program is at work in this database")

// ternPoll is the time between two attempts to get the lock.
const ternPoll = 50 * time.Millisecond

// LockOutTern takes tern's lock in shared mode and holds it until the session ends, so that no tern program works on this
// database, while other runs of this package can. It returns [ErrTernAtWork] after wait.
//
// It polls instead of waiting in the lock's queue: a waiting statement holds a snapshot, and a CREATE INDEX CONCURRENTLY of
// the lock's holder would wait for that snapshot. A shared lock is also refused while a tern program waits for its own.
func (s *Session) LockOutTern(ctx context.Context, wait time.Duration) error {
	if s.ternLock {
		return nil
	}
	// Anybody can take this lock, so it counts only if its holder may create in a schema, as a tern program does.
	query := fmt.Sprintf(`%s; select pg_try_advisory_lock_shared(%d) or not exists (
		select from pg_catalog.pg_locks l
		join pg_catalog.pg_stat_activity a on a.pid = l.pid and a.datid = l.database and a.datname = current_database()
		join pg_catalog.pg_namespace n on n.nspname <> 'public' and n.nspname !~ '^pg_' and pg_catalog.has_schema_privilege(a.usesysid, n.oid, 'create')
		where l.locktype = 'advisory' and l.objsubid = 1 and l.mode = 'ExclusiveLock' and l.classid = %d and l.objid = %d)`,
		Neutral, int64(ternLock), uint64(ternLock)>>32, uint32(ternLock&(1<<32-1)))
	ticker := time.NewTicker(ternPoll)
	defer ticker.Stop()
	for deadline := time.Now().Add(wait); ; {
		got, err := s.ValueNow(ctx, query)
		if err != nil {
			return err
		}
		if got == "t" {
			s.ternLock = true
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: its lock was not free within %v%s", ErrTernAtWork, wait, s.ternHolder(ctx))
		}
		select {
		case <-ticker.C:
		case <-fanout.Interrupted(ctx):
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
			defer cancel()
			return fmt.Errorf("interrupted while it waited: %w%s", ErrTernAtWork, s.ternHolder(asking))
		}
	}
}

// ternHolder describes the sessions that hold tern's lock or wait for it, if known.
func (s *Session) ternHolder(ctx context.Context) string {
	query := fmt.Sprintf(`
		select coalesce(string_agg(format('%%s by process %%s (%%s)',
		           case when l.granted then 'held' else 'awaited' end, l.pid, coalesce(nullif(a.application_name, ''), 'without a name')),
		           ', ' order by l.granted desc, l.pid), '')
		from pg_catalog.pg_locks l
		join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
		left join pg_catalog.pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.objsubid = 1 and l.mode = 'ExclusiveLock'
		  and l.classid = %d and l.objid = %d`, uint64(ternLock)>>32, uint32(ternLock&(1<<32-1)))
	holders, err := s.Value(ctx, query)
	if err != nil || holders == "" {
		return ""
	}
	return "; it is " + holders
}

// JoinTernLock takes tern's lock in shared mode if it is free for that, so that it is held as long as any session of the run lives. It
// is not while a tern program waits for it, which is fine.
func (s *Session) JoinTernLock(ctx context.Context) error {
	held, err := s.Value(ctx, fmt.Sprintf("%s; select pg_try_advisory_lock_shared(%d)", Neutral, int64(ternLock)))
	s.ternLock = s.ternLock || held == "t"
	return err
}

// Unlock releases a session's advisory locks and resets it, or closes it. It does so even if ctx has ended.
func (s *Session) Unlock(ctx context.Context) {
	s.ternLock = false
	if s.Conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanUpLimit)
	defer cancel()
	query := Neutral + "; select pg_catalog.pg_advisory_unlock_all()"
	if s.Conn.TxStatus() != 'I' {
		query = "rollback; " + query
	}
	if _, err := s.Conn.Exec(ctx, query).ReadAll(); err != nil {
		s.Conn.Close(ctx)
	}
}
