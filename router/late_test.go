package router_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
)

// groupOf has n callers wait for a connection, of which the first to come does something of its own, and has them sent
// together. It returns when all but that one have their answers.
func (b *testBundle) groupOf(ctx context.Context, t *testing.T, conns, n int, first func()) (firstEnded *sync.WaitGroup) {
	t.Helper()
	s := b.shard(t, 1)
	familiar(ctx, t, s, echo, 1)
	var letGo []func()
	for range conns {
		letGo = append(letGo, hold(ctx, t, s))
	}
	firstEnded = &sync.WaitGroup{}
	firstEnded.Go(first)
	b.waits(ctx, t, 1)
	var others sync.WaitGroup
	for i := range n - 1 {
		others.Go(func() {
			var owner, got int64
			err := s.QueryRow(ctx, echo, i).Scan(&owner, &got)
			if err = same3(err, owner, 1, got, int64(i)); err != nil {
				t.Error(err)
			}
		})
	}
	b.waits(ctx, t, n)
	before := b.Stats()[0].Batched
	for _, let := range letGo {
		let()
	}
	others.Wait()
	if b.Stats()[0].Batched == before {
		t.Error("nothing was sent together, so that the test proves nothing")
	}
	return firstEnded
}

// lockTable makes a table and locks it until unlock is called. It returns a read of it, which the router knows.
func lockTable(ctx context.Context, t *testing.T, s router.Shard) (sql string, unlock func()) {
	t.Helper()
	if _, err := s.Exec(ctx, `create table locked ()`); err != nil {
		t.Fatal(err)
	}
	sql = `select count(*) from locked`
	familiar(ctx, t, s, sql)
	lock, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(ctx, `lock table locked`); err != nil {
		t.Fatal(err)
	}
	return sql, func() {
		t.Helper()
		if err := lock.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNobodyWaitsForALock has a caller of a group wait for a lock that is not given up before the others have their answers.
func TestNobodyWaitsForALock(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 4})
	s := b.shard(t, 1)
	sql, unlock := lockTable(ctx, t, s)
	first := b.groupOf(ctx, t, 3, 10, func() {
		if err := s.QueryRow(ctx, sql).Scan(nil); err != nil {
			t.Error(err)
		}
	})
	unlock()
	first.Wait()
	b.isFree(ctx, t)
}

// TestNobodyWaitsForAReader has a caller of a group take the rows of a long answer only when the others have theirs.
func TestNobodyWaitsForAReader(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 3})
	s := b.shard(t, 1)
	const sql, count = `select i, repeat('x', 1000) from generate_series(1, $1) i`, 20 * router.LongAnswer / 1000
	familiar(ctx, t, s, sql, 1)
	answered := make(chan struct{})
	first := b.groupOf(ctx, t, 3, 10, func() {
		rows, err := s.Query(ctx, sql, count)
		if err != nil {
			t.Error(err)
			return
		}
		<-answered
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Err(); n != count || err != nil {
			t.Errorf("%d rows of %d, %v", n, count, err)
		}
	})
	close(answered)
	first.Wait()
	b.isFree(ctx, t)
}

// TestLateKeepsItsPlace has callers wait for connections behind a group that is late: what is sent again goes before them, or it
// would wait twice as long as anybody else.
func TestLateKeepsItsPlace(t *testing.T) {
	t.Parallel()
	const conns = 3
	b, ctx := setup(t, options{conns: conns})
	s := b.shard(t, 1)
	familiar(ctx, t, s, echo, 1)
	sql, unlock := lockTable(ctx, t, s)
	letGo, letLast := hold(ctx, t, s), hold(ctx, t, s)
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.QueryRow(ctx, sql).Scan(nil); err != nil {
			t.Error(err)
		}
	})
	b.waits(ctx, t, 1)
	answered := make(chan struct{})
	all.Go(func() {
		defer close(answered)
		var owner, got int64
		err := s.QueryRow(ctx, echo, 7).Scan(&owner, &got)
		if err = same3(err, owner, 1, got, 7); err != nil {
			t.Error(err)
		}
	})
	b.waits(ctx, t, 2)
	for i := range conns { // as many as there are connections, which they keep until the one before them has its answer
		all.Go(func() {
			letGo := hold(ctx, t, s)
			defer letGo()
			select {
			case <-answered:
			case <-time.After(10 * time.Second):
				t.Error("who came later was given a connection before the one whose group was late")
			}
		})
		b.waits(ctx, t, 3+i)
	}
	letGo()
	eventually(ctx, t, func() bool { return b.Late() >= 2 })
	letLast()
	unlock()
	all.Wait()
	b.isFree(ctx, t)
}
