package session

import (
	"context"
	"fmt"
	"strings"
)

// Blockers describes the other sessions that hold locks in a schema, or that keep others from writing Kiloshard's tables, as
// far as the role may see them.
func (s *Session) Blockers(ctx context.Context, schema string) string {
	query := fmt.Sprintf(`
		select coalesce('; locks there are held by ' || string_agg(held, ', '), '')
		from (
			select distinct format('process %%s (%%s, %%s for %%s s): %%s', a.pid, coalesce(nullif(a.application_name, ''), 'without a name'),
				a.state, round(extract(epoch from clock_timestamp() - a.xact_start)), left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)) as held
			from pg_catalog.pg_locks l
			join pg_catalog.pg_class c on c.oid = l.relation and (c.relnamespace = to_regnamespace('%s') or c.relnamespace = to_regnamespace('kiloshard')
				and c.relname in ('ledger', 'moves') and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
			join pg_catalog.pg_stat_activity a on a.pid = l.pid
			where l.granted and l.pid <> pg_backend_pid() and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
		) as holders`, schema)
	found, err := s.Value(ctx, query)
	if err != nil {
		return ""
	}
	return found
}

// Awaited describes the sessions that a process waits for, as far as the role may see them; empty if it waits for none.
func (s *Session) Awaited(ctx context.Context, pid uint32) string {
	found, err := s.Value(ctx, fmt.Sprintf(`
		select coalesce(' for ' || string_agg(format('process %%s (%%s, %%s for %%s s): %%s', a.pid, coalesce(nullif(a.application_name, ''), 'without a name'),
			a.state, round(extract(epoch from clock_timestamp() - a.xact_start)), left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)), ', '), '')
		from unnest(pg_catalog.pg_blocking_pids(%d)) b (pid)
		join pg_catalog.pg_stat_activity a on a.pid = b.pid`, pid))
	if err != nil {
		return ""
	}
	return strings.TrimRight(found, " ")
}
