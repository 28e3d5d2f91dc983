package service_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router/example/migrations"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// ownServers returns a migrated cluster on two servers that a test may kill.
func ownServers(t *testing.T) (*shards.Map, [2]*localpg.Server) {
	t.Helper()
	cfg := shardtest.ServerConfig()
	if cfg.DSN != "" {
		t.Skip("this test kills its servers: unset KILOSHARD_POSTGRES_DSN and install Postgres or Docker")
	}
	cfg.Settings = map[string]string{"fsync": "off"} // and no more: what is committed outlives the kill of a process
	var servers [2]*localpg.Server
	hosts := make([]shards.Host, 2)
	var starting sync.WaitGroup
	for i := range servers {
		starting.Go(func() {
			server, err := localpg.Start(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			servers[i] = server
			t.Cleanup(func() {
				if err := server.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
			hosts[i] = shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: server.DSN("postgres")}
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	config := shardtest.MapConfig(8, hosts)
	config.Strategy = shards.Strategy{By: shards.Directory}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.Up(t.Context(), migrate.Config{Map: m, Files: migrations.For(8)}); err != nil {
		t.Fatal(err)
	}
	return withDirectory(t, m), servers
}

// A host is killed: its users are told that nothing was done, all others are served, and a feed has what there is. When
// the host is back, so are its users.
func TestAHostIsDown(t *testing.T) {
	t.Parallel()
	m, servers := ownServers(t)
	a := serve(t, m)
	users := map[string][]shards.ID{}
	for _, id := range a.signUp(8) {
		n, err := m.ForID(id)
		if err != nil {
			t.Fatal(err)
		}
		users[m.Host(n).Name] = append(users[m.Host(n).Name], id)
	}
	here, admirer, lost := users["pg-a"][0], users["pg-a"][1], users["pg-b"][0]
	a.follow(admirer, lost)
	a.follow(here, here, lost)
	a.follow(lost, here)
	photo, gone := a.post(here, "here").ID, a.post(lost, "there").ID
	feed := fmt.Sprintf("/users/%d/feed", here)
	if got := a.pages(feed, 10); len(got) != 2 || !slices.Contains(got, photo) || !slices.Contains(got, gone) {
		t.Fatalf("feed %v, expected %d and %d", got, photo, gone)
	}

	if err := servers[1].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.do(http.StatusOK, "GET", fmt.Sprint("/users/", here), "", "")
		a.do(http.StatusOK, "GET", fmt.Sprint("/photos/", photo), "", "")
		a.post(here, "more")
	}
	key := newKey()
	path := fmt.Sprintf("/users/%d/photos", lost)
	for _, c := range []struct{ method, path, key, body string }{
		{"GET", fmt.Sprint("/users/", lost), "", ""},
		{"GET", fmt.Sprint("/photos/", gone), "", ""},
		{"GET", fmt.Sprintf("/users/%d/feed", lost), "", ""},
		{"POST", path, key, `{"title": "later"}`},
		{"POST", fmt.Sprintf("/photos/%d/likes/%d", gone, here), "", ""},
		{"POST", fmt.Sprintf("/users/%d/follow/%d", lost, here), "", ""},
	} {
		a.awaitUnavailable(c.method, c.path, c.key, c.body)
	}
	page := a.do(http.StatusOK, "GET", feed, "", "")
	if !page.Incomplete || len(page.Photos) != 4 || page.Photos[3].ID != photo {
		t.Errorf("feed %+v, expected the four photos of pg-a, and that it is incomplete", page)
	}
	page = a.do(http.StatusOK, "GET", fmt.Sprintf("/users/%d/feed", admirer), "", "")
	if !page.Incomplete || len(page.Photos) != 0 {
		t.Errorf("feed of one whose friends are all on pg-b: %+v, expected that it is incomplete", page)
	}
	hosts := a.do(http.StatusOK, "GET", "/readyz", "", "").Hosts
	if len(hosts) != 2 || hosts[0].Host != "pg-a" || !hosts[0].Up || hosts[1].Host != "pg-b" || hosts[1].Up {
		t.Errorf("hosts %+v, expected that pg-a is up and pg-b is not", hosts)
	}

	if err := servers[1].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(testLimit); ; {
		r, err := a.send("POST", path, key, `{"title": "later"}`)
		if err == nil && r.Status == http.StatusCreated {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the host is back, and still %+v, %v", r, err)
		}
	}
	if got := a.pages(path, 10); len(got) != 2 {
		t.Errorf("%d photos, expected the first and the one that was sent again", len(got))
	}
}

// awaitUnavailable wants to hear that nothing was done. The first to meet a lost connection may not know.
func (a *api) awaitUnavailable(method, path, key, body string) {
	a.t.Helper()
	for range 40 { // as many as a pool may have of them, and some
		r, err := a.send(method, path, key, body)
		if err != nil {
			a.t.Fatal(err)
		}
		if r.RetryAfter == "" || r.Status != http.StatusServiceUnavailable && r.Status != http.StatusGatewayTimeout {
			a.t.Fatalf("%s %s: %+v, expected 503 or 504, and when to try again", method, path, r)
		}
		if r.Status == http.StatusServiceUnavailable {
			return
		}
	}
	a.t.Errorf("%s %s: no 503", method, path)
}
