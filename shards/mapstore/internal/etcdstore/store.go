package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// Config is the config of a [Store]. All fields are required.
type Config struct {
	Config shards.Config // names the store and the cluster
	Poll   time.Duration
	Limit  time.Duration // of each request that Follow sends; also sets how long one server may take
	Logger *slog.Logger
}

// Store keeps the map of a cluster in etcd. It is safe for concurrent use.
type Store struct {
	cfg       Config
	endpoints []string
	prefix    string
	client    clientv3.Config

	end    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	closed  bool
	dial    *dial
	dialing sync.WaitGroup // grows only while not closed
}

// Open returns the store that a config names. It reads the files of certificates, and does not connect.
func Open(cfg Config) (*Store, error) {
	endpoints, err := parseEndpoints(cfg.Config.Store)
	if err != nil {
		return nil, err
	}
	cluster, prefix := cfg.Config.Cluster, cfg.Config.Store.Prefix
	if cluster == "" {
		return nil, &shards.FieldError{Field: "cluster", Found: "nothing", Expected: "the cluster's name, which is a part of the keys in etcd"}
	}
	if prefix == "" {
		prefix = "/kiloshard"
	}
	s := &Store{cfg: cfg, endpoints: endpoints, prefix: strings.TrimSuffix(prefix, "/") + "/" + cluster + "/"}
	s.end, s.cancel = context.WithCancel(context.Background())
	if s.client, err = s.clientConfig(); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// String names the store, without a password.
func (s *Store) String() string { return "etcd " + strings.Join(s.endpoints, ",") }

// failed adds the endpoints to an error. No endpoint has a password.
func (s *Store) failed(err error) error {
	return fmt.Errorf("etcd at %s: %w", strings.Join(s.endpoints, ", "), err)
}

func (s *Store) mapKey() string { return s.prefix + "map" }

// historyKey returns keys that sort like versions.
func (s *Store) historyKey(number int) string {
	return fmt.Sprintf("%shistory/%010d", s.prefix, number)
}

// Load returns the current version, nil for none.
func (s *Store) Load(ctx context.Context) (*backend.Version, error) {
	now, err := s.current(ctx)
	return now.version, err
}

// state is the content of the key map.
type state struct {
	version  *backend.Version // nil for none
	mod      int64            // the revision of the key's last change, 0 for a missing key
	revision int64            // of all of etcd, when the key was read
}

// current reads the current version. If the key holds no version, it returns its revisions with the error.
func (s *Store) current(ctx context.Context) (state, error) {
	response, err := s.read(ctx, "load the map", s.mapKey())
	if err != nil {
		return state{}, err
	}
	now := state{revision: response.Header.Revision}
	if len(response.Kvs) > 0 {
		now.mod = response.Kvs[0].ModRevision
		now.version, err = s.decode(response.Kvs[0])
	}
	return now, err
}

// pageSize is the most versions that Page returns.
const pageSize = 32

// Page returns some versions below a number, newest first, and none at the end. It returns the versions before an error,
// too.
func (s *Store) Page(ctx context.Context, below int) ([]*backend.Version, error) {
	if below == math.MaxInt {
		now, err := s.current(ctx)
		if err != nil {
			return nil, err
		}
		below = backend.NumberOf(now.version) + 1
	}
	if below <= 1 {
		return nil, nil
	}
	response, err := s.read(ctx, "read the map's history", s.historyKey(max(1, below-pageSize)),
		clientv3.WithRange(s.historyKey(below)), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	if err != nil {
		return nil, err
	}
	var page []*backend.Version
	for _, kv := range response.Kvs {
		v, err := s.decode(kv)
		if err != nil {
			return page, err
		}
		page = append(page, v)
	}
	return page, nil
}

// Close closes the client and ends what uses it.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.dialing.Wait()

	s.mu.Lock()
	d := s.dial
	s.dial = nil
	s.mu.Unlock()
	if d == nil {
		return nil
	}
	if err := d.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return s.failed(err)
	}
	return nil
}
