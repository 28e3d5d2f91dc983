package router_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// readCall is a way in which a reader sends a query that returns one number.
type readCall = func(ctx context.Context, r router.Reader, sql string) (int, error)

var readCalls = map[string]readCall{
	"query": func(ctx context.Context, r router.Reader, sql string) (n int, err error) {
		err = r.QueryRow(ctx, sql).Scan(&n)
		return n, err
	},
	"batch": func(ctx context.Context, r router.Reader, sql string) (n int, err error) {
		var batch pgx.Batch
		batch.Queue(sql).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		return n, r.SendBatch(ctx, &batch).Close()
	},
	"transaction": func(ctx context.Context, r router.Reader, sql string) (n int, err error) {
		err = r.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return tx.QueryRow(ctx, sql).Scan(&n) })
		return n, err
	},
}

// A reader whose replica finds no shard, or comes upon a fence, reads on the primary, or waits where it may not.
func TestShardMovesUnderReaders(t *testing.T) {
	t.Parallel()
	servers := theReplicated(t)
	standby := newStandby(t, servers, "moved")
	s, ctx := ofOneShard(t, servers.primary(), standby)
	any, replica := s.ReadOnly(router.Reads{MaxLag: time.Hour}), s.ReadOnly(router.Reads{MaxLag: time.Hour, ReplicaOnly: true, Wait: time.Minute})
	check := func(t *testing.T, r router.Reader, name string, call readCall, sql string) {
		t.Helper()
		for range 4 { // more than there are servers, since they take turns
			if n, err := call(ctx, r, sql); err != nil || n != 7 {
				t.Errorf("%s: got %d, error %v", name, n, err)
			}
		}
	}
	if _, err := readCalls["query"](ctx, replica, `select n from photos`); err != nil { // until the standby has it
		t.Fatal(err)
	}
	t.Run("fence", func(t *testing.T) {
		var reading sync.WaitGroup // together: each waits for a map
		for name, call := range readCalls {
			reading.Go(func() {
				check(t, any, name, call, `select n from fenced`)
				if _, err := call(ctx, replica, `select n from fenced`); !errors.Is(err, router.ErrMoved) {
					t.Errorf("%s: got %v", name, err)
				}
			})
		}
		reading.Wait()
	})
	t.Run("no shard", func(t *testing.T) {
		dsn := servers.primary().DSN("moved")
		leave := func() { // the standby, for as long as it is paused
			onHost(ctx, t, dsn, `alter schema shard_00000 rename to elsewhere`)
			on(ctx, t, standby, `select pg_wal_replay_resume()`)
			eventually(ctx, t, func() bool {
				return valueOn(ctx, t, standby.DSN("moved"), `select to_regnamespace('shard_00000') is null`) == "true"
			})
			pauseReplay(ctx, t, standby)
			onHost(ctx, t, dsn, `alter schema elsewhere rename to shard_00000`)
		}
		for name, call := range readCalls {
			t.Run(name, func(t *testing.T) {
				leave()
				check(t, any, name, call, `select n from photos`)
				late := time.AfterFunc(300*time.Millisecond, func() { on(ctx, t, standby, `select pg_wal_replay_resume()`) })
				defer late.Stop()
				check(t, replica, name, call, `select n from photos`)
			})
		}
	})
}

// ofOneShard returns a shard of a database of its own on a primary with a standby. Its view fenced is a fence on the standby alone.
func ofOneShard(t *testing.T, primary, standby *localpg.Server) (router.Shard, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	dsn, err := primary.CreateDatabase(ctx, "moved")
	if err != nil {
		t.Fatal(err)
	}
	m, err := shardtest.MapConfig(1, []shards.Host{{Name: "pg-a", DSN: dsn, Replicas: []string{standby.DSN("moved")}}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	onHost(ctx, t, dsn, `set search_path = shard_00000;
create table photos as select 7 as n;
create function fence() returns int stable language plpgsql as $$
begin
  if pg_is_in_recovery() then raise 'the shard has moved' using errcode = 'KSM01'; end if;
  return 7;
end $$;
create view fenced as select shard_00000.fence() as n`)
	s, err := newSource(m).follow(ctx, t).ForShard(0)
	if err != nil {
		t.Fatal(err)
	}
	return s, ctx
}
