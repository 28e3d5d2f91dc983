package migrate

import (
	"context"

	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
)

// onInterrupt sends events when ctx ends: that the run is interrupted, and what the shards under way wait for. stop ends
// this, and waits until no event is being sent.
func (r *run) onInterrupt(ctx context.Context) (stop func()) {
	told := make(chan struct{})
	cancelled := context.AfterFunc(ctx, func() {
		defer close(told)
		r.events.send(Event{Kind: Interrupted})
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CleanUpLimit)
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
		s, err := r.sessions.Take(ctx, hosts[name])
		if err != nil {
			continue // the shard's own error reports it later
		}
		for pid, n := range shardOf {
			if awaited := s.Awaited(ctx, pid); awaited != "" {
				r.events.send(Event{Kind: ShardWaits, Host: name, Shard: n, Blockers: awaited})
			}
		}
		r.sessions.Give(s)
	}
}
