package service_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/example/service"
	"github.com/kiloshard/kiloshard/shards"
)

// slow runs the service on a listener of its own and has a request under way, which waits for a lock until unlock.
func (a *api) slow(ctx context.Context, grace time.Duration) (unlock func(), answered <-chan reply, ended <-chan error) {
	a.t.Helper()
	user := a.signUp(1)[0]
	path := fmt.Sprintf("/users/%d/photos", user)
	shard := a.lockPhotos(user, &unlock)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	a.url = "http://" + listener.Addr().String()
	done, replies := make(chan error, 1), make(chan reply, 1)
	go func() { done <- a.service.Serve(ctx, listener, a.service, grace) }()
	go func() {
		r, err := a.send("POST", path, "slow", `{"title": "slow"}`)
		if err != nil {
			r.Error = err.Error()
		}
		replies <- r
	}()
	a.await("the request waits", func() bool {
		const query = `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`
		var waits bool
		if err := shard.QueryRow(context.Background(), query).Scan(&waits); err != nil {
			a.t.Fatal(err)
		}
		return waits
	})
	return unlock, replies, done
}

// lockPhotos keeps everybody from the photos of a user's shard until unlock.
func (a *api) lockPhotos(user shards.ID, unlock *func()) router.Shard {
	a.t.Helper()
	shard, err := a.router.ForID(user)
	if err != nil {
		a.t.Fatal(err)
	}
	tx, err := shard.Begin(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := tx.Exec(a.t.Context(), "lock table photos"); err != nil {
		a.t.Fatal(err)
	}
	*unlock = func() {
		if err := tx.Rollback(context.Background()); err != nil {
			a.t.Error(err)
		}
	}
	return shard
}

func (a *api) await(what string, condition func() bool) {
	a.t.Helper()
	for deadline := time.Now().Add(testLimit); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatal(what, ": not in good time")
		}
	}
}

// refuses tells whether the service accepts no connections any more.
func (a *api) refuses() bool {
	conn, err := net.Dial("tcp", a.url[len("http://"):])
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

func TestRequestsUnderWayAreFinished(t *testing.T) {
	t.Parallel()
	a := setup(t)
	other := *a
	ctx, end := context.WithCancel(t.Context())
	defer end()
	unlock, answered, ended := a.slow(ctx, testLimit)
	end()
	a.await("no new connections", a.refuses)
	other.do(http.StatusServiceUnavailable, "GET", "/readyz", "", "") // its other listener is there for that
	other.do(http.StatusOK, "GET", "/healthz", "", "")
	select {
	case err := <-ended:
		t.Errorf("Serve has returned %v with a request under way", err)
	default:
	}
	unlock()
	if r := <-answered; r.Status != http.StatusCreated || r.Title != "slow" {
		t.Errorf("answer %+v, expected the photo", r)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// While load balancers have not noticed yet, whoever comes is answered.
func TestDrain(t *testing.T) {
	t.Parallel()
	a := setup(t)
	user := a.signUp(1)[0]
	draining, err := service.New(t.Context(), service.Config{Router: a.router, StoreShards: 8, Drain: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", draining)
	mux.Handle("/readyz", draining.Ready(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.url = "http://" + listener.Addr().String()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- draining.Serve(ctx, listener, mux, time.Minute) }()
	a.do(http.StatusNoContent, "GET", "/readyz", "", "")
	end()
	a.await("the service says that it is ending", func() bool {
		r, err := a.send("GET", "/readyz", "", "")
		return err == nil && r.Status == http.StatusServiceUnavailable
	})
	a.do(http.StatusCreated, "POST", fmt.Sprintf("/users/%d/photos", user), "late", `{"title": "late"}`)
	_ = listener.Close() // instead of an hour
	if err := <-ended; err == nil {
		t.Error("no error, though the listener is gone")
	}
}

// Who never gets done does not hold up the end for longer than the grace.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	a := setup(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	unlock, answered, ended := a.slow(ctx, time.Millisecond)
	end()
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve: %v, expected that its time was over", err)
	}
	if r := <-answered; r.Error == "" {
		t.Errorf("answer %+v, expected a lost connection", r)
	}
	unlock()
}

// A request that takes too long is told so, and may be sent again.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	a := setup(t)
	user := a.signUp(1)[0]
	var unlock func()
	a.lockPhotos(user, &unlock)
	path := fmt.Sprintf("/users/%d/photos", user)
	limited := serveWithin(t, a.router.Map(), time.Second)
	limited.await("a request is too late when it is with the database", func() bool {
		r, err := limited.send("POST", path, "again", `{"title": "again"}`)
		if err != nil || r.RetryAfter == "" {
			t.Fatalf("answer %+v, %v, expected when to try again", r, err)
		}
		// On a busy machine it may be too late before it gets there.
		if r.Status != http.StatusGatewayTimeout && r.Status != http.StatusServiceUnavailable {
			t.Fatalf("answer %+v, expected 504", r)
		}
		return r.Status == http.StatusGatewayTimeout
	})
	unlock()
	a.do(http.StatusCreated, "POST", path, "again", `{"title": "again"}`)
	if got := a.pages(path, 10); len(got) != 1 {
		t.Errorf("%d photos, expected one", len(got))
	}
}
