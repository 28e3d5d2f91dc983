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
	next   atomic.Pointer[placement] // where the shard went, nil as long as it is here
	copies atomic.Pointer[copies]    // where it is read by readers
}

func newPlacement(h *host, shard session.Shard) *placement {
	p := &placement{host: h}
	p.Init(h.Pool, shard)
	return p
}

// now returns where the shard is now.
func (p *placement) now() *placement {
	last := p.next.Load()
	if last == nil {
		return p
	}
	for next := last.next.Load(); next != nil; next = last.next.Load() {
		last = next
	}
	p.next.Store(last) // those in between need not be kept
	return last
}

// acquire returns a request with a connection, to the host where the shard is by then.
func (p *placement) acquire(ctx context.Context, t *conns.Attempts, kind operation.Kind, summary string) (*conns.Request, error) {
	for {
		if c, err := t.Acquire(ctx, &p.now().Shard, kind, summary); !conns.Retired(err) {
			return c, err
		}
	}
}

// submit is [conns.Attempts.Submit] on the host where the shard is by then.
func (p *placement) submit(ctx context.Context, t *conns.Attempts, sql string, args []any, whole bool) (*conns.Request, error) {
	for {
		if c, err := t.Submit(ctx, &p.now().Shard, "", sql, args, whole); !conns.Retired(err) {
			return c, err
		}
	}
}

// copies are the placements that readers use: on the primary, and on each replica. They are made when first used: most
// shards of most hosts are read on few of them.
type copies []atomic.Pointer[placement]

// copy returns the placement that readers use on the primary, or on a replica, which is opened.
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

// dropCopies keeps no connection any more for the placements that readers used, because the shard has gone to another host.
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
