package mapstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kiloshard/kiloshard/shards"
)

// etcd keeps the map of a cluster in etcd 3.4 or later. Under the prefix and the cluster's name the key map holds the
// current version, and each key history/<version> one version; one transaction, which compares the revision of the key map,
// writes both.
//
// Etcd has no clock, so At is by the clock of the machine that made the change, and not before that of the last version.
type etcd struct {
	opts      Options
	documents documents
	endpoints []string
	prefix    string
	config    clientv3.Config
	feed      feed

	end    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	closed  bool
	dial    *etcdDial
	dialing sync.WaitGroup // grows only while not closed
}

// historyPage is how many versions one request brings.
const historyPage = 32

// openEtcd opens a store in etcd. The defaults of opts are filled in. It reads the files of certificates and does not
// connect.
func openEtcd(_ context.Context, cfg shards.Config, opts Options) (Store, error) {
	endpoints, err := etcdEndpoints(cfg.Store)
	if err != nil {
		return nil, err
	}
	if cfg.Cluster == "" {
		return nil, &shards.FieldError{Field: "cluster", Found: "nothing", Expected: "the cluster's name, which is a part of the keys in etcd"}
	}
	prefix := cfg.Store.Prefix
	if prefix == "" {
		prefix = "/kiloshard"
	}
	s := &etcd{
		opts: opts, documents: opts.documents(cfg), endpoints: endpoints,
		prefix: strings.TrimSuffix(prefix, "/") + "/" + cfg.Cluster + "/",
	}
	s.feed.follow = s.follow
	s.end, s.cancel = context.WithCancel(context.Background())
	if s.config, err = s.clientConfig(cfg); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// Format prints the name of the store for every verb, so that no password is printed.
func (s *etcd) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, "store etcd "+strings.Join(s.endpoints, ","))
}

func (s *etcd) mapKey() string { return s.prefix + "map" }

// historyKey returns keys that sort like versions.
func (s *etcd) historyKey(version int) string {
	return fmt.Sprintf("%shistory/%010d", s.prefix, version)
}

// localConfig returns the config of this machine, which overrides a copy of the map.
func (s *etcd) localConfig() shards.Config { return s.documents.local }

// Load implements [Store].
func (s *etcd) Load(ctx context.Context) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	now, err := s.present(ctx, s.documents)
	return now.entry, err
}

// presence is the content of the key map.
type presence struct {
	entry    Entry
	mod      int64 // revision of its last change, 0 for a missing key
	revision int64 // of all of etcd, when this was read
}

// present reads the current version. It returns ErrNoMap, with the revision, if there is none.
func (s *etcd) present(ctx context.Context, d documents) (presence, error) {
	var now presence
	response, err := s.read(ctx, "load the map", s.mapKey())
	if err != nil {
		return now, err
	}
	now.revision = response.Header.Revision
	if len(response.Kvs) == 0 {
		return now, ErrNoMap
	}
	now.mod = response.Kvs[0].ModRevision
	now.entry, err = s.decode(d, response.Kvs[0])
	return now, err
}

// History implements [Store].
func (s *etcd) History(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		newest, err := s.newest(ctx)
		for ; err == nil && newest > 0; newest -= historyPage {
			var page *clientv3.GetResponse
			if page, err = s.page(ctx, newest); err != nil {
				break
			}
			if len(page.Kvs) == 0 {
				return // versions follow one another without a gap
			}
			for _, kv := range page.Kvs {
				var entry Entry
				if entry, err = s.decode(s.documents.keepUnset(), kv); err != nil {
					break
				}
				if !yield(entry, nil) {
					return
				}
			}
		}
		if err != nil && !errors.Is(err, ErrNoMap) {
			yield(Entry{}, err)
		}
	}
}

func (s *etcd) newest(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	now, err := s.present(ctx, s.documents.keepUnset())
	return now.entry.version(), err
}

// page reads the versions up to one, newest first.
func (s *etcd) page(ctx context.Context, newest int) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	return s.read(ctx, "read the map's history", s.historyKey(max(1, newest-historyPage+1)),
		clientv3.WithRange(s.historyKey(newest+1)), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
}

// Watch implements [Store]. All watchers of a store share one connection and one watch of etcd.
func (s *etcd) Watch(ctx context.Context, after int) iter.Seq2[Entry, error] {
	return s.feed.watch(ctx, after)
}

// Close implements [Store].
func (s *etcd) Close() error {
	s.feed.close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.dialing.Wait()

	s.mu.Lock()
	dial := s.dial
	s.dial = nil
	s.mu.Unlock()
	if dial == nil {
		return nil
	}
	if err := dial.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return s.about(err)
	}
	return nil
}
