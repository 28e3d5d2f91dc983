package service_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	a := setup(t)
	ann := a.do(http.StatusCreated, "POST", "/users", "k1", `{"name": "ann"}`)
	if again := a.do(http.StatusCreated, "POST", "/users", "k1", `{"name": "ann"}`); again.ID != ann.ID {
		t.Errorf("the same request again: user %d, expected %d", again.ID, ann.ID)
	}
	a.do(http.StatusConflict, "POST", "/users", "k2", `{"name": "ann"}`)
	if got := a.do(http.StatusOK, "GET", fmt.Sprint("/users/", ann.ID), "", ""); got.Name != "ann" || got.ID != ann.ID {
		t.Errorf("user %d is %q, expected ann", got.ID, got.Name)
	}

	hosts := map[string]int{}
	for _, id := range a.signUp(32) {
		shard, err := a.router.ForID(id)
		if err != nil {
			t.Fatal(err)
		}
		hosts[shard.Host().Name]++
	}
	if len(hosts) != 2 || min(hosts["pg-a"], hosts["pg-b"]) < 15 {
		t.Errorf("new users are on %v, expected as many on each host", hosts)
	}
}

// Many who want one name at the same time: one gets it.
func TestOneNameForOne(t *testing.T) {
	t.Parallel()
	a := setup(t)
	var (
		mu       sync.Mutex
		statuses = map[int]int{}
		all      sync.WaitGroup
	)
	for range 20 {
		all.Go(func() {
			r, err := a.send("POST", "/users", newKey(), `{"name": "bob"}`)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[r.Status]++
		})
	}
	all.Wait()
	if statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != 19 {
		t.Errorf("statuses %v, expected 201 once and 409 for all others", statuses)
	}
}

func TestPhotosAreMadeOnce(t *testing.T) {
	t.Parallel()
	a := setup(t)
	began := time.Now()
	user := a.signUp(1)[0]
	path := fmt.Sprintf("/users/%d/photos", user)
	var (
		mu   sync.Mutex
		seen = map[shards.ID]bool{}
		all  sync.WaitGroup
	)
	for range 20 { // a client that has lost patience many times
		all.Go(func() {
			r, err := a.send("POST", path, "once", `{"title": "sea"}`)
			if err != nil || r.Status != http.StatusCreated || r.Title != "sea" || r.User != user {
				t.Errorf("answer %+v, %v", r, err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[r.ID] = true
		})
	}
	all.Wait()
	listed := a.do(http.StatusOK, "GET", path, "", "").Photos
	if len(seen) != 1 || len(listed) != 1 || !seen[listed[0].ID] {
		t.Errorf("IDs %v were answered, and %d photos are there", seen, len(listed))
	}
	a.do(http.StatusConflict, "POST", path, "once", `{"title": "lake"}`)
	a.do(http.StatusCreated, "POST", path, "another", `{"title": "sea"}`)
	got := a.do(http.StatusOK, "GET", fmt.Sprint("/photos/", listed[0].ID), "", "")
	if got.Title != "sea" || got.At.Before(began.Add(-time.Minute)) || got.At.After(time.Now().Add(time.Minute)) {
		t.Errorf("photo %+v, made after %v", got, began)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	a := setup(t)
	user := a.signUp(1)[0]
	photo := a.post(user, "sea").ID
	const nobody = 7 // an ID that shard 0 can have made
	noShard := int64(8000) << 10
	for _, c := range []struct {
		name, method, path, key, body string
		status                        int
	}{
		{"no such user", "GET", fmt.Sprint("/users/", nobody), "", "", 404},
		{"no such shard", "GET", fmt.Sprint("/users/", noShard), "", "", 404},
		{"no ID", "GET", "/users/ann", "", "", 400},
		{"no such photo", "GET", fmt.Sprint("/photos/", nobody), "", "", 404},
		{"no such path", "GET", "/photo", "", "", 404},
		{"wrong method", "PUT", fmt.Sprint("/users/", user), "", "", 405},
		{"photo of nobody", "POST", fmt.Sprintf("/users/%d/photos", nobody), "k", `{"title": "x"}`, 404},
		{"photos of nobody", "GET", fmt.Sprintf("/users/%d/photos", nobody), "", "", 404},
		{"feed of nobody", "GET", fmt.Sprintf("/users/%d/feed", nobody), "", "", 404},
		{"no key", "POST", fmt.Sprintf("/users/%d/photos", user), "", `{"title": "x"}`, 400},
		{"no title", "POST", fmt.Sprintf("/users/%d/photos", user), "k", `{}`, 400},
		{"no body", "POST", fmt.Sprintf("/users/%d/photos", user), "k", ``, 400},
		{"no JSON", "POST", fmt.Sprintf("/users/%d/photos", user), "k", `title`, 400},
		{"two bodies", "POST", fmt.Sprintf("/users/%d/photos", user), "k", `{"title": "x"}{}`, 400},
		{"unknown field", "POST", fmt.Sprintf("/users/%d/photos", user), "k", `{"titel": "x"}`, 400},
		{"NUL in a title", "POST", fmt.Sprintf("/users/%d/photos", user), "k", `{"title": "a\u0000b"}`, 400},
		{"key that is no text", "POST", fmt.Sprintf("/users/%d/photos", user), "\xff", `{"title": "x"}`, 400},
		{"NUL in a name", "POST", "/users", "k", `{"name": "a\u0000b"}`, 400},
		{"long title", "POST", fmt.Sprintf("/users/%d/photos", user), "k", `{"title": "` + strings.Repeat("x", 201) + `"}`, 400},
		{"long body", "POST", fmt.Sprintf("/users/%d/photos", user), "k", `{"title": "` + strings.Repeat("x", 1<<17) + `"}`, 413},
		{"limit", "GET", fmt.Sprintf("/users/%d/feed?limit=101", user), "", "", 400},
		{"before", "GET", fmt.Sprintf("/users/%d/feed?before=x", user), "", "", 400},
		{"follow nobody", "POST", fmt.Sprintf("/users/%d/follow/%d", user, nobody), "", "", 404},
		{"nobody follows", "POST", fmt.Sprintf("/users/%d/follow/%d", nobody, user), "", "", 404},
		{"like nothing", "POST", fmt.Sprintf("/photos/%d/likes/%d", nobody, user), "", "", 404},
		{"unlike nothing", "DELETE", fmt.Sprintf("/photos/%d/likes/%d", nobody, user), "", "", 404},
		{"take back what was not said", "DELETE", fmt.Sprintf("/photos/%d/likes/%d", photo, user), "", "", 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, a.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.key != "" {
			r.Header.Set("Idempotency-Key", c.key)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s: %s %s: %d, expected %d", c.name, c.method, c.path, response.StatusCode, c.status)
		}
	}
	if listed := a.do(http.StatusOK, "GET", fmt.Sprintf("/users/%d/photos", user), "", "").Photos; len(listed) != 1 {
		t.Errorf("%d photos are there, expected the one that was not refused", len(listed))
	}
}

// Many like a photo at the same time, each twice; some take it back.
func TestLikesAreCountedOnce(t *testing.T) {
	t.Parallel()
	a := setup(t)
	users := a.signUp(12)
	photo := a.post(users[0], "sea").ID
	var all sync.WaitGroup
	for _, user := range users {
		all.Go(func() {
			for range 2 {
				for { // as a client does
					r, err := a.send("POST", fmt.Sprintf("/photos/%d/likes/%d", photo, user), "", "")
					if err == nil && r.Status == http.StatusOK {
						break
					}
					if err != nil || r.Status != http.StatusServiceUnavailable || r.RetryAfter == "" {
						t.Errorf("answer %+v, %v", r, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if got := a.do(http.StatusOK, "GET", fmt.Sprint("/photos/", photo), "", "").Likes; got != len(users) {
		t.Errorf("%d likes, expected %d", got, len(users))
	}
	for range 2 {
		got := a.do(http.StatusOK, "DELETE", fmt.Sprintf("/photos/%d/likes/%d", photo, users[3]), "", "").Likes
		if got != len(users)-1 {
			t.Errorf("%d likes after one was taken back, expected %d", got, len(users)-1)
		}
	}
}
