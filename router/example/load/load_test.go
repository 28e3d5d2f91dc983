package load_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/example/load"
	"github.com/kiloshard/kiloshard/router/example/migrations"
	"github.com/kiloshard/kiloshard/router/example/service"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	os.Exit(leak.Check(shardtest.Run(m)))
}

// runs lets the load work on the service, which users reach by way of between, until enough requests came there.
func runs(t *testing.T, between func(http.Handler) http.Handler) (load.Checked, string) {
	t.Helper()
	config := shardtest.New(t, shardtest.Config{Shards: 8, Strategy: shards.Strategy{By: shards.Directory}, Migrations: migrations.For(8)}).Map.Config()
	config.Types = []shards.ObjectType{{Name: "board", Number: 1}}
	m, err := config.Map()
	if err == nil {
		_, err = provision.Create(t.Context(), provision.CreateConfig{Map: m})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(t.Context(), router.Config{Map: m, Failover: router.Failover{FailAfter: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	photos, err := service.New(t.Context(), service.Config{Router: r, StoreShards: 8, TimeLimit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	const enough = 180
	var requests atomic.Int64
	done := make(chan struct{})
	through := between(photos)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through.ServeHTTP(w, r)
		if requests.Add(1) == enough {
			close(done)
		}
	}))
	t.Cleanup(server.Close)

	l := load.New(load.Config{URL: server.URL, Rate: 200, Users: 10, UnderWay: 4, Patience: 5 * time.Minute, HostOf: func(id shards.ID) string {
		n, err := m.ForID(id)
		if err != nil {
			return err.Error()
		}
		return m.Host(n).Name
	}})
	t.Cleanup(l.Close)
	if err := l.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.During("the whole run", true, func() error {
		l.Run(t.Context(), done)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	checked := l.Check(t.Context())
	var report bytes.Buffer
	if err := l.Report(&report, checked); err != nil {
		t.Fatal(err)
	}
	return checked, report.String()
}

func TestEveryWriteIsThereOnce(t *testing.T) {
	t.Parallel()
	checked, report := runs(t, func(h http.Handler) http.Handler { return h })
	if !checked.OK() || checked.Acknowledged < 50 || checked.GivenUp != 0 {
		t.Errorf("%+v", checked)
	}
	for _, part := range []string{"sign up", "of users on pg-a", "of users on pg-b", "the whole run (", "No attempt failed.", "No feed was incomplete.", "No write was given up.", "0 lost, 0 doubled"} {
		if !strings.Contains(report, part) {
			t.Errorf("%q is not in the report:\n%s", part, report)
		}
	}
}

// A service that fails now and then, before or after it has done the work: users try again, and nothing is doubled.
func TestUsersTryAgain(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	checked, report := runs(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch n.Add(1) % 20 {
			case 0:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
			case 10:
				h.ServeHTTP(httptest.NewRecorder(), r)
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusGatewayTimeout)
			default:
				h.ServeHTTP(w, r)
			}
		})
	})
	if !checked.OK() || checked.GivenUp != 0 {
		t.Errorf("%+v", checked)
	}
	for _, part := range []string{"503 Service Unavailable", "504 Gateway Timeout"} {
		if !strings.Contains(report, part) {
			t.Errorf("%q is not in the report:\n%s", part, report)
		}
	}
}

// Services that are wrong are found out.
func TestLostAndDoubledWritesAreFound(t *testing.T) {
	t.Parallel()
	posts := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/photos")
	}
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		var n atomic.Int64
		checked, report := runs(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if posts(r) && n.Add(1) == 15 {
					w.WriteHeader(http.StatusCreated)
					fmt.Fprint(w, `{"id": "77"}`)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		if checked.Lost == 0 || checked.OK() || !strings.Contains(report, "\n  lost: photo") {
			t.Errorf("a photo was lost: %+v\n%s", checked, report)
		}
	})
	t.Run("doubled", func(t *testing.T) {
		t.Parallel()
		var n atomic.Int64
		checked, report := runs(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if posts(r) && n.Add(1) == 15 {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					for _, key := range []string{"another", r.Header.Get("Idempotency-Key")} {
						again := r.Clone(r.Context())
						again.Body = io.NopCloser(bytes.NewReader(body))
						again.Header.Set("Idempotency-Key", key)
						answer := httptest.NewRecorder()
						h.ServeHTTP(answer, again)
						if key != "another" {
							w.WriteHeader(answer.Code)
							_, _ = w.Write(answer.Body.Bytes())
						}
					}
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		if checked.Doubled != 1 || checked.Lost != 0 || !strings.Contains(report, "\n  doubled: photo") {
			t.Errorf("a photo was doubled: %+v\n%s", checked, report)
		}
	})
	t.Run("given up", func(t *testing.T) {
		t.Parallel()
		var n atomic.Int64
		checked, report := runs(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if posts(r) && n.Add(1) == 15 {
					h.ServeHTTP(httptest.NewRecorder(), r)
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		if !checked.OK() || checked.GivenUp != 1 || checked.GivenUpThere != 1 || !strings.Contains(report, "500 Internal Server Error") {
			t.Errorf("a photo is there that nobody knows of: %+v\n%s", checked, report)
		}
	})
}
