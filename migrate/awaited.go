package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// underWay is a shard that a session works on.
type underWay struct {
	host shards.Host
	pid  uint32 // of its session's process on the server
}

func (r *run) begin(s *session, n shards.Number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under[n] = underWay{s.host, s.conn.PID()}
}

func (r *run) end(n shards.Number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.under, n)
}

// onInterrupt sends events when ctx ends: that the run is interrupted, and what the shards under way wait for. stop ends
// this, and waits until no event is being sent.
func (r *run) onInterrupt(ctx context.Context) (stop func()) {
	told := make(chan struct{})
	cancelled := context.AfterFunc(ctx, func() {
		defer close(told)
		r.events.send(Event{Kind: Interrupted})
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
		defer cancel()
		r.tellAwaited(asking)
	})
	return func() {
		if !cancelled() {
			<-told
		}
	}
}

// tellAwaited reports, for each shard under way that waits for another session, what that session does.
func (r *run) tellAwaited(ctx context.Context) {
	byHost := map[string]map[uint32]shards.Number{}
	hosts := map[string]shards.Host{}
	r.mu.Lock()
	for n, u := range r.under {
		if byHost[u.host.Name] == nil {
			byHost[u.host.Name], hosts[u.host.Name] = map[uint32]shards.Number{}, u.host
		}
		byHost[u.host.Name][u.pid] = n
	}
	r.mu.Unlock()
	for name, shardOf := range byHost {
		s, err := r.sessions.take(ctx, hosts[name])
		if err != nil {
			continue // the shard's own error reports it later
		}
		for pid, n := range shardOf {
			if awaited := s.awaited(ctx, pid); awaited != "" {
				r.events.send(Event{Kind: ShardWaits, Host: name, Shard: n, Blockers: awaited})
			}
		}
		r.sessions.give(s)
	}
}

// awaited describes the sessions that a process waits for, as far as the role may see them; empty if it waits for none.
func (s *session) awaited(ctx context.Context, pid uint32) string {
	found, err := s.value(ctx, fmt.Sprintf(`
		select coalesce(' for ' || string_agg(format('process %%s (%%s, %%s for %%s s): %%s', a.pid, coalesce(nullif(a.application_name, ''), 'without a name'),
			a.state, round(extract(epoch from clock_timestamp() - a.xact_start)), left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)), ', '), '')
		from unnest(pg_catalog.pg_blocking_pids(%d)) b (pid)
		join pg_catalog.pg_stat_activity a on a.pid = b.pid`, pid))
	if err != nil {
		return ""
	}
	return strings.TrimRight(found, " ")
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
