package router

import (
	"context"
	"slices"
	"sync"

	"github.com/kiloshard/kiloshard/shards"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// snapshot is a map with all that a router needs to go by it. It never changes: the router goes over to the next one at
// once, and who holds one finishes on it.
type snapshot struct {
	shards     *shards.Map
	hosts      []*host      // in the order of the map
	placements []*placement // by Number

	// The first placement of each shard, which its handles hold: those from before a move are equal to those
	// from after it.
	first []*placement
}

// on returns the handle of a shard that the map has.
func (s *snapshot) on(n shards.Number) Shard { return Shard{s.first[n]} }

// turnTo makes the snapshot of a map. Hosts and placements that are as they were are those of the snapshot
// before it, so that their connections and what these know go on.
func (s *snapshot) turnTo(m *shards.Map, open func(shards.Host) (*host, error)) (next *snapshot, err error) {
	var opened []*host
	next = &snapshot{shards: m, placements: make([]*placement, m.Len())}
	for _, place := range m.Hosts() {
		h := s.hostLike(place)
		if h == nil {
			if h, err = open(place); err != nil {
				closeAll(context.Background(), opened)
				return nil, &shards.HostError{Host: place.Name, Err: err}
			}
			opened = append(opened, h)
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

// hostLike returns the host of the same name and database, nil if there is none.
func (s *snapshot) hostLike(place shards.Host) *host {
	for _, h := range s.hosts {
		if h.Name == place.Name && h.opened.SameDatabase(place) {
			return h
		}
	}
	return nil
}

// settle tells hosts and placements of a snapshot that it is the one that counts, after another one. It returns the hosts that
// are no longer part of it.
func (s *snapshot) settle(before *snapshot) (left []*host) {
	count := make([]int, len(s.hosts))
	for n := range s.placements {
		count[s.shards.HostIndex(shards.Number(n))]++
	}
	for i, h := range s.hosts {
		h.Place.Store(&s.shards.Hosts()[i])
		h.expect(count[i])
	}
	var emptied []*host // by some shards
	for _, old := range before.placements {
		if int(old.Number) >= len(s.placements) {
			continue // handles of it go on as they are
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

// closeAll closes hosts, all at once, and waits for it, see [host.close].
func closeAll(ctx context.Context, hosts []*host) {
	var wait sync.WaitGroup
	for _, h := range hosts {
		wait.Go(func() { h.close(ctx, errClosed) })
	}
	wait.Wait()
}
