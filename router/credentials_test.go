package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// sentinel is the password that nobody may see.
const sentinel = "s3ntinel-pa55word"

// secretRouter is a router that logs in as a role of its own, and how its password is changed.
type secretRouter struct {
	*router.Router
	user     string
	connects atomic.Int64
}

// withRole returns a router over a copy of the template whose password is the sentinel. password, if there is one, is
// where the credentials come from; else query, behind the DSN, says it.
func withRole(t *testing.T, user, query string, password func() string) *secretRouter {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	u, err := url.Parse(routertest.CreateDatabase(ctx, t))
	if err != nil {
		t.Fatal("bad DSN")
	}
	admin(ctx, t, fmt.Sprintf("create role %s login password '%s' in role %s", user, sentinel, pgx.Identifier{u.User.Username()}.Sanitize()))
	t.Cleanup(func() { admin(context.Background(), t, "drop role "+user) })
	u.User = url.User(user)
	u.RawQuery += query
	m, err := (shards.Config{
		Cluster: "test", Shards: shardCount, Epoch: epoch,
		Hosts:     []shards.Host{{Name: "pg-a", DSN: u.String()}},
		Placement: []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: shardCount - 1}), Host: "pg-a"}},
	}).Map()
	if err != nil {
		t.Fatal(err)
	}
	s := &secretRouter{user: user}
	config := router.Config{Map: m, Failover: patient, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = 4
		cfg.MaxConnLifetime = 50 * time.Millisecond // so that connections are made all the time
		cfg.AfterConnect = func(context.Context, *pgx.Conn) error {
			s.connects.Add(1)
			return nil
		}
		return nil
	}}
	if password != nil {
		config.Credentials = func(context.Context, shards.Host) (shards.Credentials, error) {
			return shards.Credentials{User: user, Password: password()}, nil
		}
	}
	if s.Router, err = router.New(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A password is changed under load, first where it is kept and then on the server: no call fails.
func TestPasswordChangesUnderLoad(t *testing.T) {
	t.Parallel()
	const next = "n3xt-" + sentinel
	for _, kept := range []string{"function", "passfile"} {
		t.Run(kept, func(t *testing.T) {
			t.Parallel()
			var (
				r   *secretRouter
				set func(password string)
			)
			if kept == "function" {
				var value atomic.Value
				value.Store(sentinel)
				set = func(p string) { value.Store(p) }
				r = withRole(t, "router_rotates_function", "", func() string { return value.Load().(string) })
			} else {
				path := filepath.Join(t.TempDir(), "pgpass")
				set = func(p string) {
					if err := errors.Join(os.WriteFile(path+".new", []byte("*:*:*:*:"+p+"\n"), 0o600), os.Rename(path+".new", path)); err != nil {
						t.Fatal(err)
					}
				}
				set(sentinel)
				r = withRole(t, "router_rotates_passfile", "&passfile="+path, nil)
			}
			calls, failed, stop := load(t, r)
			some := func(when string) {
				t.Helper()
				connects, begun := r.connects.Load(), calls.Load()
				waitFor(t, when, func() bool { return r.connects.Load() > connects+8 && calls.Load() > begun+40 })
			}
			some("before")
			set(next)
			some("changed where it is kept")
			admin(t.Context(), t, fmt.Sprintf("alter role %s password '%s'", r.user, next))
			some("changed on the server")
			stop()
			if n := len(*failed); n > 0 {
				t.Errorf("%d of %d calls failed, the first: %v", n, calls.Load(), (*failed)[0])
			}
			t.Logf("%d calls on %d connections, %d failed", calls.Load(), r.connects.Load(), len(*failed))

			admin(t.Context(), t, fmt.Sprintf("alter role %s password 'other'", r.user))
			waitFor(t, "the connections have to be made anew", func() bool {
				err := firstOwner(t.Context(), r.Router, 3)
				if err == nil {
					return false
				}
				if text := err.Error(); !errors.Is(err, connect.ErrCredentials) || !strings.Contains(text, "pg-a") || !strings.Contains(text, "28P01") {
					t.Errorf("got %v", err)
				}
				return true
			})
		})
	}
}

// load reads from all shards until stop.
func load(t *testing.T, r *secretRouter) (calls *atomic.Int64, failed *[]error, stop func()) {
	t.Helper()
	calls, failed = &atomic.Int64{}, &[]error{}
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			for n := i; ctx.Err() == nil; n = (n + 7) % shardCount {
				if err := firstOwner(context.WithoutCancel(ctx), r.Router, n); err != nil {
					mu.Lock()
					*failed = append(*failed, err)
					mu.Unlock()
				}
				calls.Add(1)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		wait.Wait()
	})
	t.Cleanup(stop)
	return calls, failed, stop
}

func firstOwner(ctx context.Context, r *router.Router, n int) error {
	shard, err := r.ForShard(shards.Number(n))
	if err != nil {
		return err
	}
	var owner int
	if err := shard.QueryRow(ctx, "select owner from photos where id = 1").Scan(&owner); err != nil {
		return err
	}
	if owner != n {
		return fmt.Errorf("shard %d: the row of %d", n, owner)
	}
	return nil
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(testLimit)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// Whatever a router says of a host that refuses its password, the password is not in it.
func TestRouterShowsNoPassword(t *testing.T) {
	t.Parallel()
	const wrong = sentinel + "-wrong"
	passfile := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(passfile, []byte("*:*:*:*:"+wrong+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, r := range []*secretRouter{
		withRole(t, "router_shows_0", "", func() string { return wrong }),
		withRole(t, "router_shows_1", "&password="+wrong, nil),
		withRole(t, "router_shows_2", "&passfile="+passfile, nil),
	} {
		shard, err := r.ForShard(7)
		if err != nil {
			t.Fatal(err)
		}
		_, execErr := shard.Exec(t.Context(), "select 1")
		_, beginErr := shard.Begin(t.Context())
		_, collectErr := many.Collect(t.Context(), r.Router, r.All(), many.Query[int]{SQL: "select 1", Scan: pgx.RowTo[int]})
		explanation, err := r.Explain(t.Context(), shards.NumberKey(7))
		if err != nil {
			t.Error(err)
		}
		for _, err := range []error{execErr, beginErr, collectErr, r.Ping(t.Context())} {
			if !errors.Is(err, connect.ErrCredentials) {
				t.Errorf("%d: got %v, expected that the credentials are refused", i, err)
			}
		}
		for _, value := range []any{
			execErr, beginErr, collectErr, explanation, r.Router, shard, r.Map(), r.Map().Config(), r.Stats(), r.Ping(t.Context()),
			router.Config{Map: r.Map()},
			r,
		} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
				if text := fmt.Sprintf(verb, value); strings.Contains(text, sentinel) {
					t.Errorf("%s of %T prints %s", verb, value, text)
				}
			}
			if text, _ := json.Marshal(value); strings.Contains(string(text), sentinel) {
				t.Errorf("JSON of %T: %s", value, text)
			}
		}
	}
}
