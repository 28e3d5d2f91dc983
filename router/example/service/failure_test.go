package service_test

import (
	"fmt"
	"net/http"
	"testing"
)

// What interrupts a request that waits for the database, and what its sender is told. The same request makes one photo
// afterwards, whatever it was.
func TestInterruptedRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		query  string // of what has a statement end
		status int
	}{
		{"its connection is lost", "select pg_terminate_backend($1)", http.StatusGatewayTimeout},
		{"its statement is cancelled", "select pg_cancel_backend($1)", http.StatusServiceUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := setup(t)
			user := a.signUp(1)[0]
			path := fmt.Sprintf("/users/%d/photos", user)
			shard, err := a.router.ForID(user)
			if err != nil {
				t.Fatal(err)
			}
			lock, err := shard.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// A photo refers to its user, and so waits for the row, when its statement has long been sent.
			if _, err := lock.Exec(t.Context(), "select from users where id = $1 for update", user); err != nil {
				t.Fatal(err)
			}
			answered := make(chan reply, 1)
			go func() {
				r, err := a.send("POST", path, "again", `{"title": "again"}`)
				if err != nil {
					r.Error = err.Error()
				}
				answered <- r
			}()
			var waiting int
			a.await("the request waits", func() bool {
				const query = `select coalesce(max(pid), 0) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
				if err := shard.QueryRow(t.Context(), query).Scan(&waiting); err != nil {
					t.Fatal(err)
				}
				return waiting != 0
			})
			if _, err := shard.Exec(t.Context(), c.query, waiting); err != nil {
				t.Fatal(err)
			}
			if r := <-answered; r.Status != c.status || r.RetryAfter == "" {
				t.Errorf("answer %+v, expected %d, and when to try again", r, c.status)
			}
			if err := lock.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.do(http.StatusCreated, "POST", path, "again", `{"title": "again"}`)
			if got := a.pages(path, 10); len(got) != 1 {
				t.Errorf("%d photos, expected one", len(got))
			}
		})
	}
}
