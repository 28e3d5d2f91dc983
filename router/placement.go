package router

import (
	"context"
	"sync/atomic"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/operation"
)

// placement is a shard on the host where one version of the map has it.
type placement struct {
	conns.Shard
	host   *host
	next   atomic.Pointer[placement] // where the shard moved to; nil while it is here
	copies atomic.Pointer[copies]    // the placements that readers use
}

func newPlacement(h *host, shard session.Shard) *placement {
	p := &placement{host: h}
	p.Init(h.Pool, shard)
	return p
}

// now returns the current placement of the shard.
func (p *placement) now() *placement {
	last := p.next.Load()
	if last == nil {
		return p
	}
	for next := last.next.Load(); next != nil; next = last.next.Load() {
		last = next
	}
	p.next.Store(last) // skip the placements in between next time
	return last
}

// acquire returns a request with a connection to the shard's host. If the shard moves meanwhile, it tries the new host.
func (p *placement) acquire(ctx context.Context, t *conns.Attempts, kind operation.Kind, summary string) (*conns.Request, error) {
	for {
		if c, err := t.Acquire(ctx, &p.now().Shard, kind, summary); !conns.Retired(err) {
			return c, err
		}
	}
}

// submit is [conns.Attempts.Submit] on the shard's host. If the shard moves meanwhile, it tries the new host.
func (p *placement) submit(ctx context.Context, t *conns.Attempts, sql string, args []any, whole bool) (*conns.Request, error) {
	for {
		if c, err := t.Submit(ctx, &p.now().Shard, "", sql, args, whole); !conns.Retired(err) {
			return c, err
		}
	}
}

// copies are the placements that readers use: first on the primary, then on each replica. Each is made on first use, because
// most shards are read on few servers.
type copies []atomic.Pointer[placement]

// copy returns the placement that readers use on the primary or on replica i. It opens the replica if needed.
func (p *placement) copy(rs *replicas, i int) (*placement, error) {
	all := p.copies.Load()
	if all == nil {
		size := 1
		if rs != nil {
			size += len(rs.all)
		}
		made := make(copies, size)
		p.copies.CompareAndSwap(nil, &made)
		all = p.copies.Load()
	}
	at := &(*all)[i+1]
	if found := at.Load(); found != nil {
		return found, nil
	}
	on := p.host
	if i != replica.Primary {
		var err error
		if on, err = rs.all[i].open(); err != nil {
			return nil, err
		}
	}
	at.CompareAndSwap(nil, newPlacement(on, session.Shard{Number: p.Number, Schema: p.Schema, Path: p.Path, Reads: true}))
	return at.Load(), nil
}

// dropCopies lets go of the connections of the readers' placements, because the shard has moved to another host.
func (p *placement) dropCopies(next *placement) {
	all := p.copies.Load()
	if all == nil {
		return
	}
	for i := range *all {
		if c := (*all)[i].Load(); c != nil {
			c.next.Store(next)
			c.Leave()
		}
	}
}
