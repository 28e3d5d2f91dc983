package router

import (
	"context"
	"sync/atomic"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/operation"
)

// home is what a router knows of one shard.
type home struct {
	conns.Shard
	host   *host
	next   atomic.Pointer[home]   // the home that the shard went to, nil as long as this is it
	copies atomic.Pointer[copies] // where it is read by readers
}

func newHome(h *host, shard session.Shard) *home {
	at := &home{host: h}
	at.Init(h.Pool, shard)
	return at
}

// now returns the home that a shard has now.
func (h *home) now() *home {
	last := h.next.Load()
	if last == nil {
		return h
	}
	for next := last.next.Load(); next != nil; next = last.next.Load() {
		last = next
	}
	h.next.Store(last) // those in between need not be kept
	return last
}

// acquire returns a call that was given a line, at the home that the shard has by then.
func (h *home) acquire(ctx context.Context, t *conns.Attempts, kind operation.Kind, summary string) (*conns.Request, error) {
	for {
		if c, err := t.Acquire(ctx, &h.now().Shard, kind, summary); !conns.Retired(err) {
			return c, err
		}
	}
}

// ask is [conns.Attempts.Ask] at the home that the shard has by then.
func (h *home) ask(ctx context.Context, t *conns.Attempts, sql string, args []any, whole bool) (*conns.Request, error) {
	for {
		if c, err := t.Ask(ctx, &h.now().Shard, "", sql, args, whole); !conns.Retired(err) {
			return c, err
		}
	}
}

// copies are the homes in which readers find a shard: on the primary, and on each replica. They are made when they are
// wanted: most shards of most hosts are read in few of them.
type copies []atomic.Pointer[home]

// copy returns the home in which readers find the shard on the primary, or on a replica, which is opened.
func (h *home) copy(rs *replicas, i int) (*home, error) {
	all := h.copies.Load()
	if all == nil {
		size := 1
		if rs != nil {
			size += len(rs.all)
		}
		made := make(copies, size)
		h.copies.CompareAndSwap(nil, &made)
		all = h.copies.Load()
	}
	at := &(*all)[i+1]
	if found := at.Load(); found != nil {
		return found, nil
	}
	on := h.host
	if i != replica.Primary {
		var err error
		if on, err = rs.all[i].open(); err != nil {
			return nil, err
		}
	}
	at.CompareAndSwap(nil, newHome(on, session.Shard{Number: h.Number, Schema: h.Schema, Path: h.Path, Reads: true}))
	return at.Load(), nil
}

// dropCopies makes the homes in which readers found the shard ones that no connection is kept for, since it has gone to
// another home.
func (h *home) dropCopies(next *home) {
	all := h.copies.Load()
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
