package mapstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// follow reports the map until ctx ends: it reads the map, watches it from there, and starts again if that fails.
func (s *etcd) follow(ctx context.Context, report func(Entry, error)) {
	var pause backoff
	for ctx.Err() == nil {
		now, err := s.limited(ctx)
		report(now.entry, err)
		if err == nil || errors.Is(err, ErrNoMap) || now.mod > 0 { // a document that is not a map is watched, too
			if err = s.watchFrom(ctx, now, report); err == nil {
				pause.reset()
				continue
			}
			report(Entry{}, err)
		}
		pause.wait(ctx)
	}
}

func (s *etcd) limited(ctx context.Context) (presence, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	return s.present(ctx, s.documents)
}

// watchFrom watches from a revision on. It returns nil for revisions that etcd no longer has, or never had: after a
// compaction, or after a restore from an older backup.
//
// If a server is lost, etcd's client continues without an error. So the key is polled as well, to notice missed changes and
// an etcd that does not answer.
func (s *etcd) watchFrom(ctx context.Context, from presence, report func(Entry, error)) error {
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
				return s.about(fmt.Errorf("watch the map: %w", err))
			}
			for _, event := range response.Events {
				mod = event.Kv.ModRevision
				if event.Type != clientv3.EventTypePut {
					mod = 0
				}
			}
			s.take(response.Events, report)
		case <-time.After(s.opts.Poll - s.opts.Poll/10 + rand.N(s.opts.Poll/5+1)):
			if missed, err := s.missed(ctx, from.revision, mod); err != nil || missed {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// missed reports whether the key map is at another revision than mod, or etcd at an older one than it was.
func (s *etcd) missed(ctx context.Context, revision, mod int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
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

// take reports the last of some changes.
func (s *etcd) take(events []*clientv3.Event, report func(Entry, error)) {
	if len(events) == 0 {
		return
	}
	last := events[len(events)-1]
	if last.Type != clientv3.EventTypePut {
		report(Entry{}, ErrNoMap)
		return
	}
	report(s.decode(s.documents, last.Kv))
}
