package mapstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// startEtcd starts an etcd in a process of its own.
func startEtcd(t *testing.T, cfg localetcd.Config) *localetcd.Server {
	t.Helper()
	cfg.Command, cfg.Env = etcdCommand()
	server, err := localetcd.Start(newContext(t), cfg)
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop()) })
	return server
}

// openEtcd opens a store on a server, with keys of the test's own.
func openEtcd(t *testing.T, server *localetcd.Server, change ...func(*mapstore.Options)) mapstore.Store {
	t.Helper()
	store := shards.Store{Kind: "etcd", Endpoints: []string{server.Endpoint()}, Prefix: prefixOf(t)}
	return open(t, shards.Config{Cluster: cluster, Store: store}, change...)
}

func prefixOf(t *testing.T) string { return "/" + notInPrefix.ReplaceAllString(t.Name(), "_") + "/" }

var notInPrefix = regexp.MustCompile(`[^A-Za-z0-9]+`)

func TestEtcd(t *testing.T) {
	t.Parallel()
	shared := startEtcd(t, localetcd.Config{})
	testStore(t, func(t *testing.T, killed bool) kit {
		on := shared
		if killed {
			on = startEtcd(t, localetcd.Config{})
		}
		client, key := etcdClient(t, on), prefixOf(t)+"photos/map"
		put := func(t *testing.T, text string) {
			_, err := client.Put(newContext(t), key, text)
			noError(t, err)
		}
		var good string
		return kit{
			open: func(t *testing.T, change ...func(*mapstore.Options)) mapstore.Store {
				return openEtcd(t, on, change...)
			},
			spoil: func(t *testing.T, how func(string) string) {
				response, err := client.Get(newContext(t), key)
				noError(t, err)
				good = string(response.Kvs[0].Value)
				put(t, how(good))
			},
			mend:    func(t *testing.T) { put(t, good) },
			kill:    func(t *testing.T) { noError(t, on.Kill(newContext(t))) },
			restart: func(t *testing.T) { noError(t, on.Restart(newContext(t))) },
		}
	})
}

// etcdClient is a client of the test's own, beside the store's.
func etcdClient(t *testing.T, server *localetcd.Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	noError(t, err)
	t.Cleanup(func() { noError(t, client.Close()) })
	return client
}

func TestEtcdKeys(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	store := open(t, shards.Config{Cluster: cluster, Store: shards.Store{Kind: "etcd", Endpoints: []string{server.Endpoint()}}})
	swap(t, store, 0, 1)
	swap(t, store, 1, 2)
	response, err := etcdClient(t, server).Get(t.Context(), "/", clientv3.WithPrefix())
	noError(t, err)
	var keys []string
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	equal(t, "keys", strings.Join(keys, " "), "/kiloshard/photos/history/0000000001 /kiloshard/photos/history/0000000002 /kiloshard/photos/map")
	equal(t, "present version", string(response.Kvs[2].Value), string(response.Kvs[1].Value))
	var record map[string]any
	noError(t, json.Unmarshal(response.Kvs[2].Value, &record))
	equal(t, "version", record["version"], any(2.0))
	equal(t, "why", record["why"], any("mark 2"))
	if text := string(response.Kvs[2].Value); !strings.Contains(text, "${PG_A_PASSWORD}") || strings.Contains(text, "sesame") {
		t.Errorf("the variable is not as written: %s", text)
	}
}

// TestEtcdHoldsNoMap has another program put texts under the key that are no maps. The errors do not show the texts.
func TestEtcdHoldsNoMap(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	store := openEtcd(t, server)
	client := etcdClient(t, server)
	for _, text := range []string{"s3cret", `{"version": 0}`, `{"version": 1, "map": "s3cret: ["}`, `{"version": "s3cret"}`} {
		_, err := client.Put(t.Context(), prefixOf(t)+"photos/map", text)
		noError(t, err)
		_, err = store.Load(t.Context())
		if err == nil || errors.Is(err, mapstore.ErrNoMap) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v", text, err)
		}
		if _, err = store.Swap(t.Context(), 0, newChange(1)); err == nil {
			t.Errorf("%s: swapped", text)
		}
	}
}

// A map that is too large for etcd is refused with its size and the limit.
func TestEtcdMapTooLarge(t *testing.T) {
	t.Parallel()
	store := openEtcd(t, startEtcd(t, localetcd.Config{}))
	large := newChange(1)
	large.Config.Hosts[1].Replicas[0] += "?application_name=" + strings.Repeat("x", 900_000)
	_, err := store.Swap(newContext(t), 0, large)
	if err == nil || errors.Is(err, mapstore.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "the map, of 900") || !strings.Contains(err.Error(), "--max-request-bytes") {
		t.Errorf("got %.300v", err)
	}
	for _, err := range []error{err, store.(mapstore.Checker).Check(newContext(t), large)} {
		if !mapstore.IsRefusal(err) || !strings.Contains(err.Error(), "the map, of 900") {
			t.Errorf("no refusal: %.300v", err)
		}
	}
	swap(t, store, 0, 1)
}

// Etcd compacts old revisions while no client is connected: a watch continues from the current version.
func TestEtcdWatchAfterCompaction(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	store := openEtcd(t, server, func(o *mapstore.Options) { o.Poll = time.Hour })
	swap(t, store, 0, 1)
	w := watch(t, store, 0)
	checkEntry(t, w.entry(t), 1, 1)
	client := etcdClient(t, server)
	for version := 1; version < 3; version++ {
		noError(t, server.Kill(t.Context()))
		noError(t, server.Restart(t.Context()))
		swap(t, openEtcd(t, server), version, version+1)
		response, err := client.Put(t.Context(), "another key", "")
		noError(t, err)
		_, err = client.Compact(t.Context(), response.Header.Revision)
		noError(t, err)
		checkEntry(t, w.entry(t), version+1, version+1)
	}
}

// While a server hangs, requests end at the limit. They work again once it runs.
func TestEtcdHangs(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	store := openEtcd(t, server, func(o *mapstore.Options) { o.Limit, o.Poll = time.Second, 100*time.Millisecond })
	swap(t, openEtcd(t, server), 0, 1)
	w := watch(t, store, 0)
	checkEntry(t, w.entry(t), 1, 1)
	noError(t, server.Pause())
	_, err := store.Load(newContext(t))
	for err == nil { // the signal may still be on its way
		_, err = store.Load(newContext(t))
	}
	checkIs(t, err, context.DeadlineExceeded)
	if _, err = store.Swap(newContext(t), 1, newChange(9)); err == nil {
		t.Error("swapped on a server that hangs")
	}
	_ = w.fails(t)
	noError(t, server.Resume())
	swap(t, openEtcd(t, server), 1, 2)
	checkEntry(t, w.entry(t), 2, 2)
}

// A thousand watchers are one client with one watch.
func TestEtcdWatchersShareOneWatch(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	store, other := openEtcd(t, server), openEtcd(t, server)
	swap(t, other, 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var all, have, got sync.WaitGroup
	have.Add(1000)
	got.Add(1000)
	for range 1000 {
		all.Go(func() {
			for entry, err := range store.Watch(ctx, 0) {
				switch {
				case err != nil:
					t.Error(err)
				case entry.Map.Version() == 1:
					have.Done()
				case entry.Map.Version() == 2:
					got.Done()
				}
			}
		})
	}
	have.Wait()
	limit := newContext(t)
	for watches := ""; watches != "1"; watches = metric(t, server, "etcd_debugging_mvcc_watcher_total") {
		if limit.Err() != nil {
			t.Fatalf("%s watches, want 1", watches)
		}
	}
	swap(t, other, 1, 2)
	got.Wait()
	cancel()
	all.Wait()
}

// A change during a restart of the server is made if the server is back within the limit.
func TestEtcdSwapOverAKill(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	store := openEtcd(t, server)
	swap(t, store, 0, 1)
	noError(t, server.Kill(t.Context()))
	done := make(chan error)
	go func() {
		_, err := store.Swap(newContext(t), 1, newChange(2))
		done <- err
	}()
	noError(t, server.Restart(t.Context()))
	noError(t, <-done)
	checkEntry(t, load(t, store), 2, 2)
}

func TestEtcdIsDown(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	noError(t, server.Kill(t.Context()))
	var logged strings.Builder
	hasty := mapstore.Options{Limit: time.Second, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, user := range []string{"", "kiloshard"} {
		cfg := shards.Config{Cluster: cluster, Store: shards.Store{Kind: "etcd", Endpoints: []string{server.Endpoint()}, User: user}}
		if user != "" {
			cfg.Store.Password = "s3cret"
		}
		store, err := mapstore.Open(t.Context(), cfg, hasty)
		noError(t, err)
		ctx := newContext(t)
		for _, err = store.Load(ctx); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "refused"); {
			_, err = store.Load(ctx) // the machine is busy: time was up before there was an answer
		}
		for _, want := range []string{"etcd at " + server.Endpoint() + ": load the map: ", "connection refused"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("user %q: got %v, want %q in it", user, err, want)
			}
		}
		_, err = store.Swap(t.Context(), 0, newChange(1))
		if err == nil || errors.Is(err, mapstore.ErrOutcomeUnknown) {
			t.Errorf("user %q: the request was not sent: got %v", user, err)
		}
		noError(t, store.Close())
	}
	if !strings.Contains(logged.String(), "etcd: ") || strings.Contains(logged.String(), "s3cret") {
		t.Errorf("log: %s", logged.String())
	}
}
