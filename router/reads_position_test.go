package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
)

// seeTheirWrites has writers read what they have just written, with every setting of synchronous_commit, from
// replicas that are often behind.
func seeTheirWrites(t *testing.T, slow, other *localpg.Server) {
	b, ctx := withReplicas(t, options{}, other.DSN("app"), slow.DSN("app"))
	b.awaitAll(ctx, t)
	const writers, rounds = 8, 60
	var group errgroup.Group
	var onReplica, onPrimary atomic.Int64
	for w := range writers {
		group.Go(func() error {
			s := b.shard(t, w%readShards)
			for i := 0; i < rounds || onReplica.Load() == 0; i++ { // a machine that is busy has replicas be late for long
				if w == 0 && i%20 == 10 { // one replica falls behind for a while
					on(ctx, t, slow, `select pg_wal_replay_pause()`)
				}
				at, err := write(ctx, s, w, i)
				if err != nil {
					return err
				}
				var title string
				var recovering bool
				r := s.ReadOnly(router.Reads{After: at, MaxLag: time.Minute})
				err = r.QueryRow(ctx, `select title, pg_is_in_recovery() from photos where id = $1`, 1000+w).Scan(&title, &recovering)
				if err != nil {
					return err
				}
				if want := fmt.Sprint("round ", i); title != want {
					return fmt.Errorf("writer %d: got %q after %q was written; on a replica: %v", w, title, want, recovering)
				}
				if recovering {
					onReplica.Add(1)
				} else {
					onPrimary.Add(1)
				}
				if w == 0 && i%20 == 15 {
					on(ctx, t, slow, `select pg_wal_replay_resume()`)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	on(ctx, t, slow, `select pg_wal_replay_resume()`) // wherever the last round was
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d reads on replicas, %d on the primary, none stale", onReplica.Load(), onPrimary.Load())
}

// write writes a title and returns where the primary was then.
func write(ctx context.Context, s router.Shard, writer, round int) (router.Position, error) {
	commit := []string{"on", "off", "local"}[round%3]
	sql := fmt.Sprintf(`set local synchronous_commit = %s;
		insert into photos values (%d, 0, 'round %d') on conflict (id) do update set title = excluded.title`, commit, 1000+writer, round)
	if _, err := s.Exec(ctx, sql); err != nil {
		return router.Position{}, err
	}
	return s.Position(ctx)
}

// TestPositionsAtTheEndOfAPage has the log stop at the beginning of a file, which no replica's position ever is at.
func TestPositionsAtTheEndOfAPage(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	b.awaitAll(ctx, t)
	for range 3 {
		if _, err := b.plain.Exec(ctx, `select pg_switch_wal()`); err != nil {
			t.Fatal(err)
		}
		s := b.shard(t, 2)
		at, err := s.Position(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var one int
		reads := router.Reads{After: at, ReplicaOnly: true, Wait: time.Minute, MaxLag: time.Minute}
		if err := s.ReadOnly(reads).QueryRow(ctx, `select 1`).Scan(&one); err != nil {
			t.Error(err)
		}
	}
}

func TestPositionsAsText(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	at, err := b.shard(t, 0).Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var again router.Position
	if err := again.UnmarshalText([]byte(at.String())); err != nil || again != at || at.IsZero() {
		t.Errorf("%q became %q, error %v", at, again, err)
	}
	if err := again.UnmarshalText(nil); err != nil || !again.IsZero() || again.String() != "" {
		t.Errorf("nothing became %q, error %v", again, err)
	}
	for _, bad := range []string{"x", "1/2/3", "1/2/3/4/5", "1/2/3/4 ", "-/1/1/1", "1/2/0/fffffffff", "01/1/0/1"} {
		again = at
		if err := again.UnmarshalText([]byte(bad)); err == nil || again != at {
			t.Errorf("%q became %q, error %v", bad, again, err)
		}
	}
}

// TestPositionsOfOthers reads after a position of another cluster and one of a later timeline, which mean nothing to the
// replicas, and after one that is yet to come.
func TestPositionsOfOthers(t *testing.T) {
	t.Parallel()
	other, ctx := setup(t, options{})
	foreign, err := other.shard(t, 0).Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b, ctx := withReplicas(t, options{})
	b.awaitAll(ctx, t)
	mine, err := b.shard(t, 0).Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(mine.String(), "/")
	later, far := mine, mine
	if err := later.UnmarshalText([]byte(parts[0] + "/99/" + parts[2] + "/" + parts[3])); err != nil {
		t.Fatal(err)
	}
	if err := far.UnmarshalText([]byte(parts[0] + "/" + parts[1] + "/FFFF/0")); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]router.Position{"another cluster": foreign, "a later timeline": later, "yet to come": far} {
		var recovering bool
		r := b.shard(t, 0).ReadOnly(router.Reads{After: at})
		if err := r.QueryRow(ctx, `select pg_is_in_recovery()`).Scan(&recovering); err != nil || recovering {
			t.Errorf("%s: on a replica: %v, error %v", name, recovering, err)
		}
		r = b.shard(t, 0).ReadOnly(router.Reads{After: at, ReplicaOnly: true, Wait: time.Millisecond})
		err := r.QueryRow(ctx, `select pg_is_in_recovery()`).Scan(&recovering)
		if !errors.Is(err, router.ErrNoReplica) || !strings.Contains(err.Error(), "pg-a/1: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
