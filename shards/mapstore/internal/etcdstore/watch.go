package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// Follow reports the current version until ctx ends: it reads the map, watches it from there, and starts again if that
// fails.
func (s *Store) Follow(ctx context.Context, report backend.Report) {
	var pause backend.Backoff
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, s.cfg.Limit)
		now, err := s.current(limited)
		cancel()
		report(now.version, err)
		if err == nil || now.mod > 0 { // a key that holds no version is watched, too
			if err = s.watchFrom(ctx, now, report); err == nil {
				pause.Reset()
				continue
			}
			report(nil, err)
		}
		pause.Wait(ctx)
	}
}

// watchFrom watches from a revision on. It returns nil if etcd no longer has the revision, after a compaction, or does
// not have it yet, after a restore from an older backup.
//
// If a server is lost, etcd's client continues without an error. So watchFrom also polls the key, to notice missed
// changes and an etcd that does not answer.
func (s *Store) watchFrom(ctx context.Context, from state, report backend.Report) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	watched, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var changes clientv3.WatchChan
	opened := make(chan clientv3.WatchChan) // Watch returns only when etcd has answered
	var opening sync.WaitGroup
	opening.Go(func() {
		select {
		case opened <- client.Watch(watched, s.mapKey(), clientv3.WithRev(from.revision+1)):
		case <-watched.Done():
		}
	})
	defer opening.Wait()
	defer cancel()
	mod := from.mod // 0 while there is no map
	for {
		select {
		case changes = <-opened:
		case response, ok := <-changes:
			err := response.Err()
			if errors.Is(err, rpctypes.ErrCompacted) {
				return nil
			}
			if err == nil && !ok {
				err = errors.New("the watch has ended")
			}
			if err != nil {
				return s.failed(fmt.Errorf("watch the map: %w", err))
			}
			for _, event := range response.Events {
				mod = event.Kv.ModRevision
				if event.Type != clientv3.EventTypePut {
					mod = 0
				}
			}
			s.reportLast(response.Events, report)
		case <-time.After(s.cfg.Poll - s.cfg.Poll/10 + rand.N(s.cfg.Poll/5+1)):
			if missed, err := s.missed(ctx, from.revision, mod); err != nil || missed {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// missed reports whether the key map is at another revision than mod, or etcd at an older one than it was.
func (s *Store) missed(ctx context.Context, revision, mod int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limit)
	defer cancel()
	response, err := s.read(ctx, "watch the map", s.mapKey(), clientv3.WithKeysOnly())
	if err != nil {
		return false, err
	}
	var present int64
	if len(response.Kvs) > 0 {
		present = response.Kvs[0].ModRevision
	}
	return present != mod || response.Header.Revision < revision, nil
}

// reportLast reports the last of some changes.
func (s *Store) reportLast(events []*clientv3.Event, report backend.Report) {
	if len(events) == 0 {
		return
	}
	last := events[len(events)-1]
	if last.Type != clientv3.EventTypePut {
		report(nil, nil)
		return
	}
	report(s.decode(last.Kv))
}
