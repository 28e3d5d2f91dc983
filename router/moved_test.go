package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/shards"
)

// movedCalls are calls to a shard, each the first of its kind on a connection or not.
var movedCalls = map[string]func(ctx context.Context, s router.Shard) error{
	"exec": func(ctx context.Context, s router.Shard) error {
		return second(s.Exec(ctx, `insert into photos values (next_id(), 1, 'x')`))
	},
	"known": func(ctx context.Context, s router.Shard) error {
		return second(s.Exec(ctx, `update photos set title = 'x' where id = $1`, 1))
	},
	"query": func(ctx context.Context, s router.Shard) error {
		return s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(new(int))
	},
	"batch": func(ctx context.Context, s router.Shard) error {
		var batch pgx.Batch
		batch.Queue(`insert into photos values (next_id(), 1, 'x')`)
		return s.SendBatch(ctx, &batch).Close()
	},
	"begin": func(ctx context.Context, s router.Shard) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return second(tx.Exec(ctx, `insert into photos values (next_id(), 1, 'x')`)) })
	},
	"reader's query": func(ctx context.Context, s router.Shard) error {
		return s.ReadOnly(router.Reads{}).QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(new(int))
	},
	"reader's batch": func(ctx context.Context, s router.Shard) error {
		var batch pgx.Batch
		batch.Queue(`select owner from photos where id = $1`, 1)
		return s.ReadOnly(router.Reads{}).SendBatch(ctx, &batch).Close()
	},
	"reader's begin": func(ctx context.Context, s router.Shard) error {
		return s.ReadOnly(router.Reads{}).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(new(int))
		})
	},
	"copy": func(ctx context.Context, s router.Shard) error {
		return second(s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "owner"}, pgx.CopyFromRows([][]any{{time.Now().UnixNano(), 1}})))
	},
}

// callOften makes a call until the sessions of a shard know its schema and the statement, which then travels with others.
func callOften(ctx context.Context, t *testing.T, s router.Shard, call shardCall) {
	t.Helper()
	for range 5 {
		if err := call(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
}

// oneOn returns a map in which all shards are on a host.
func oneOn(t *testing.T, b *testBundle, version, host int) *shards.Map {
	t.Helper()
	c := b.Map().Config()
	c.Version = version
	c.Placement = []shards.Placement{{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: shardCount - 1}), Host: fmt.Sprintf("pg-%c", 'a'+host)}}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A shard that is not where the map says is looked for in the newest map, and the call goes on at its new home.
func TestShardHasMoved(t *testing.T) {
	t.Parallel()
	for name, call := range movedCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{hosts: 2})
			first, next := oneOn(t, b, 1, 0), oneOn(t, b, 2, 1)
			maps := newSource(first)
			r := maps.follow(ctx, t)
			s, err := r.ForShard(5)
			if err != nil {
				t.Fatal(err)
			}
			callOften(ctx, t, s, call)
			b.run(ctx, t, `alter schema shard_00005 rename to shard_00005__moved_1`)
			// The map comes late, and nobody tells of it.
			late := time.AfterFunc(200*time.Millisecond, func() {
				maps.mu.Lock()
				defer maps.mu.Unlock()
				maps.m = next
			})
			defer late.Stop()
			if err := call(ctx, s); err != nil {
				t.Error(err)
			}
			if got := s.Host().Name; got != "pg-b" {
				t.Errorf("the shard is on %s", got)
			}
			if err := call(ctx, s); err != nil {
				t.Error(err)
			}
		})
	}
}

// Without a map that knows better the call fails, and says which shard was not found on which host.
func TestShardIsNowhere(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	maps := newSource(b.Map())
	r := maps.follow(ctx, t)
	b.run(ctx, t, `alter schema shard_00005 rename to shard_00005__moved_1`)
	var calling sync.WaitGroup // together: each waits for a map
	for name, call := range movedCalls {
		for how, r := range map[string]*router.Router{"maps": r, "map": b.Router} {
			s, err := r.ForShard(5)
			if err != nil {
				t.Fatal(err)
			}
			calling.Go(func() {
				err := call(ctx, s)
				if !errors.Is(err, router.ErrMoved) || !router.SafeToRetry(err) || !strings.HasPrefix(err.Error(), "shard 5 (shard_00005 on pg-a): ") {
					t.Errorf("%s, %s: got %v", name, how, err)
				}
			})
		}
	}
	calling.Wait()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	s, err := r.ForShard(5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(short, `insert into photos values (next_id(), 1, 'x')`); err == nil || short.Err() == nil {
		t.Errorf("got %v", err)
	}
}

// A transaction whose first statement fails as it may on a shard that has moved, which it has not, is one that has failed: what follows does
// not run.
func TestFirstStatementFails(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 5)
	for _, failing := range []string{`select * from nowhere`, `select nowhere()`, `select lastval()`} {
		tx, err := s.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, failing); err == nil || errors.Is(err, router.ErrMoved) || strings.Contains(err.Error(), "25P02") {
			t.Errorf("%s: got %v", failing, err)
		}
		if _, err := tx.Exec(ctx, `insert into photos values (7, 1, 'x')`); err == nil || !strings.Contains(err.Error(), "25P02") {
			t.Errorf("%s, then a write: got %v", failing, err)
		}
		if err := tx.Commit(ctx); !errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Errorf("%s, then COMMIT: got %v", failing, err)
		}
	}
	if tag, err := s.Exec(ctx, `delete from photos where id = 7`); err != nil || tag.RowsAffected() != 0 {
		t.Errorf("a write has run: %s, %v", tag, err)
	}
	b.isFree(ctx, t)
}

// The mark of a fence that somebody who may create in a shard's schema has made there hides nothing.
func TestForgedFence(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	b.run(ctx, t, `create view shard_00005.kiloshard_moved as select 1`)
	for name, call := range movedCalls {
		if err := call(ctx, b.shard(t, 5)); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A call that came upon a fence which has come down by the time one looks, as that of a move that is tried again, is made once more. So is one
// that drew from the sequence behind that fence.
func TestFenceHasComeDown(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	r := newSource(b.Map()).follow(ctx, t)
	b.run(ctx, t, `create sequence shard_00005.tries`)
	raise := func(message, code string) {
		b.run(ctx, t, fmt.Sprintf(`create or replace function shard_00005.fenced_once() returns int language plpgsql as $$ begin
			if nextval('shard_00005.tries') = 1 then raise exception '%s' using errcode = '%s'; end if; return 1; end $$`, message, code))
	}
	s, err := r.ForShard(5)
	if err != nil {
		t.Fatal(err)
	}
	const write = `insert into photos values (next_id(), fenced_once(), 'x') returning owner`
	inTx := func(ctx context.Context) error {
		return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return tx.QueryRow(ctx, write).Scan(new(int)) })
	}
	ways := map[string]func() error{
		"by itself":                    func() error { return s.QueryRow(ctx, write).Scan(new(int)) },
		"in a transaction":             func() error { return inTx(ctx) },
		"in a transaction that begins": func() error { return inTx(together.BeginLate(ctx)) },
	}
	for message, code := range map[string]string{"shard 5 moved": "KSM01", "sequence shard_00005__moved_1.next_id_seq cannot make IDs of shard 5": "KS001"} {
		raise(message, code)
		for way, call := range ways {
			b.run(ctx, t, `alter sequence shard_00005.tries restart; delete from shard_00005.photos`)
			if err := call(); err != nil {
				t.Errorf("%s, %s: %v", code, way, err)
			}
			var count int
			if err := s.QueryRow(ctx, `select count(*) from photos where owner = 1`).Scan(&count); err != nil || count != 1 {
				t.Errorf("%s, %s: %d rows, %v, expected one", code, way, count, err)
			}
		}
	}
	raise("sequence shard_00005.other cannot make IDs of shard 5", "KS001")
	b.run(ctx, t, `alter sequence shard_00005.tries restart`)
	if err := ways["by itself"](); sqlState(err) != "KS001" {
		t.Errorf("a sequence that is wrong: got %v, expected its error", err)
	}
}
