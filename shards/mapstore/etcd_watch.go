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

// follow tells of the map until ctx ends: it reads it, watches from there on, and starts again whenever that fails.
func (s *etcd) follow(ctx context.Context, tell func(Entry, error)) {
	var pause backoff
	for ctx.Err() == nil {
		now, err := s.limited(ctx)
		tell(now.entry, err)
		if err == nil || errors.Is(err, ErrNoMap) || now.mod > 0 { // what is no map is watched, too
			if err = s.watchFrom(ctx, now, tell); err == nil {
				pause.reset()
				continue
			}
			tell(Entry{}, err)
		}
		pause.wait(ctx)
	}
}

func (s *etcd) limited(ctx context.Context) (presence, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	return s.present(ctx, s.documents)
}

// watchFrom watches from what was found on. It returns nil for revisions that etcd has no longer, or never had: after a
// compaction, or when etcd was restored from an older backup.
//
// Etcd's client goes on by itself when a server is lost, without a word. So every now and then it is asked whether
// anything was missed, which also tells that etcd does not answer.
func (s *etcd) watchFrom(ctx context.Context, from presence, tell func(Entry, error)) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	watched, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var changes clientv3.WatchChan
	opened := make(chan clientv3.WatchChan) // Watch returns only once etcd has answered
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
			s.take(response.Events, tell)
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

// take tells of the last of some changes.
func (s *etcd) take(events []*clientv3.Event, tell func(Entry, error)) {
	if len(events) == 0 {
		return
	}
	last := events[len(events)-1]
	if last.Type != clientv3.EventTypePut {
		tell(Entry{}, ErrNoMap)
		return
	}
	tell(s.decode(s.documents, last.Kv))
}
