package router

import (
	"context"
	"slices"
	"sync"

	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/shards"
)

// snapshot is a map with everything that a router needs to use it. It never changes: the router replaces it atomically, and
// a call that holds an old one finishes on it.
type snapshot struct {
	shards     *shards.Map
	hosts      []*host      // in the order of the map
	placements []*placement // by Number

	// first is the first placement of each shard. Handles hold it, so that handles from before and after a move are
	// equal.
	first []*placement
}

// on returns the handle of shard n, which must be in the map.
func (s *snapshot) on(n shards.Number) Shard { return Shard{s.first[n]} }

// turnTo returns the snapshot of a newer map. It reuses unchanged hosts and placements of s, so that their connections stay
// open and keep their prepared statements. It calls open for each other host.
func (s *snapshot) turnTo(m *shards.Map, open func(shards.Host) (*host, error)) (next *snapshot, err error) {
	next = &snapshot{shards: m, placements: make([]*placement, m.Len())}
	for _, place := range m.Hosts() {
		h := hostLike(s.hosts, place)
		if h == nil {
			if h, err = open(place); err != nil {
				return nil, &shards.HostError{Host: place.Name, Err: err}
			}
		}
		next.hosts = append(next.hosts, h)
	}
	named := s.shards != nil && s.shards.Schema(0) == m.Schema(0) && s.shards.SearchPath(0) == m.SearchPath(0)
	for i := range next.placements {
		n, h := shards.Number(i), next.hosts[m.HostIndex(shards.Number(i))]
		if named && i < len(s.placements) && s.placements[i].host == h {
			next.placements[i] = s.placements[i]
		} else {
			next.placements[i] = newPlacement(h, session.Shard{Number: n, Schema: m.Schema(n), Path: m.SearchPath(n)})
		}
	}
	next.first = slices.Clone(next.placements)
	copy(next.first, s.first)
	return next, nil
}

// hostLike returns the host with the same name and database, nil if there is none.
func hostLike(hosts []*host, place shards.Host) *host {
	for _, h := range hosts {
		if h.Name == place.Name && h.opened.SameDatabase(place) {
			return h
		}
	}
	return nil
}

// settle makes the hosts and placements of s current, in place of those of the previous snapshot. It returns the hosts that s
// no longer has.
func (s *snapshot) settle(before *snapshot) (left []*host) {
	count := make([]int, len(s.hosts))
	for n := range s.placements {
		count[s.shards.HostIndex(shards.Number(n))]++
	}
	for i, h := range s.hosts {
		h.Place.Store(&s.shards.Hosts()[i])
		h.expect(count[i])
	}
	var emptied []*host // hosts that some shards left
	for _, old := range before.placements {
		if int(old.Number) >= len(s.placements) {
			continue // its handles keep working
		}
		if next := s.placements[old.Number]; next != old {
			old.next.Store(next)
			old.Leave()
			old.dropCopies(next)
			if !slices.Contains(emptied, old.host) {
				emptied = append(emptied, old.host)
			}
		}
	}
	for _, h := range emptied {
		h.Pool.Wake()
	}
	for _, h := range before.hosts {
		if !slices.Contains(s.hosts, h) {
			left = append(left, h)
		}
	}
	return left
}

// openedHosts are hosts that were opened for a map that the router does not use yet.
type openedHosts struct {
	open func(shards.Host) (*host, error)
	all  []*host
}

// host returns a host, which it opens unless it did before.
func (o *openedHosts) host(place shards.Host) (*host, error) {
	if h := hostLike(o.all, place); h != nil {
		return h, nil
	}
	h, err := o.open(place)
	if err == nil {
		o.all = append(o.all, h)
	}
	return h, err
}

// closeUnused closes the hosts that are not used.
func (o *openedHosts) closeUnused(ctx context.Context, used []*host) {
	closeAll(ctx, slices.DeleteFunc(o.all, func(h *host) bool { return slices.Contains(used, h) }))
}

// closeAll closes hosts concurrently and waits until all are closed, see [host.close].
func closeAll(ctx context.Context, hosts []*host) {
	var wait sync.WaitGroup
	for _, h := range hosts {
		wait.Go(func() { h.close(ctx, errClosed) })
	}
	wait.Wait()
}
