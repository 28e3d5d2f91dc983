package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/testdata/sqlc/albums"
)

var _ albums.DBTX = router.Reader{}

func TestReadersUseAllReplicas(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	b.awaitAll(ctx, t)
	onReplica := uint64(0)
	for i := 0; b.replica(0).Reads < 100 || b.replica(1).Reads < 100; i++ {
		s := b.shard(t, i%readShards)
		var owner int64
		var recovering bool
		if err := s.ReadOnly(router.Reads{}).QueryRow(ctx, `select owner, pg_is_in_recovery() from photos where id = $1`, 1+i%8).Scan(&owner, &recovering); err != nil {
			t.Fatal(err)
		}
		if owner != int64(s.Number()) {
			t.Fatalf("got a row of shard %d in shard %d", owner, s.Number())
		}
		if recovering {
			onReplica++
		}
	}
	after := b.ReadStats()[0]
	if sum := after.Replicas[0].Reads + after.Replicas[1].Reads; onReplica == 0 || sum < onReplica {
		t.Errorf("%d reads were on a replica, and %d were counted", onReplica, sum)
	}
	if name, address := after.Replicas[1].Name, after.Replicas[1].Address; name != "pg-a/1" || !strings.HasPrefix(address, "127.0.0.1:") || strings.Contains(address, "@") {
		t.Errorf("got %s at %s", name, address)
	}
}

// TestNothingIsWrittenByReaders tries to write by way of readers, on replicas and on the primary.
func TestNothingIsWrittenByReaders(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		for name, reads := range map[string]router.Reads{"replica": {ReplicaOnly: true, Wait: time.Minute}, "primary": {MaxLag: 1}} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				b, ctx := withReplicas(t, options{dsn: execMode(mode)})
				b.awaitAll(ctx, t)
				tryToWrite(ctx, t, b, b.shard(t, 3).ReadOnly(reads), name == "replica")
			})
		}
	}
}

func tryToWrite(ctx context.Context, t *testing.T, b *readBundle, r router.Reader, replica bool) {
	t.Helper()
	refused := func(what string, err error) {
		t.Helper()
		if sqlState(err) != "25006" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for range 20 { // until the session has the path of the shard, and a statement with others
		var recovering bool
		if err := r.QueryRow(ctx, `select pg_is_in_recovery()`).Scan(&recovering); err != nil || recovering != replica {
			t.Fatalf("got recovery %v, error %v", recovering, err)
		}
	}
	var setting string
	if err := r.QueryRow(ctx, `show transaction_read_only`).Scan(&setting); err != nil || setting != "on" {
		t.Errorf("transaction_read_only is %q, error %v", setting, err)
	}
	_, err := r.Exec(ctx, `insert into photos values (100, 1, 'x')`)
	refused("insert", err)
	if !errors.Is(err, router.ErrReadOnly) || !strings.Contains(err.Error(), "a reader does not write") {
		t.Errorf("got %v", err)
	}
	var id int64
	refused("a function", r.QueryRow(ctx, `select add_photo(101)`).Scan(&id))
	refused("with", r.QueryRow(ctx, `with x as (insert into photos values (102, 1, 'x') returning id) select id from x`).Scan(&id))
	_, err = r.Exec(ctx, `set transaction read write`)
	if err == nil {
		t.Error("set transaction read write was accepted")
	}
	if _, err = r.Exec(ctx, `insert into photos values (103, 1, 'x'); insert into photos values (104, 1, 'x')`); err == nil {
		t.Error("two statements were accepted")
	}
	var batch pgx.Batch
	batch.Queue(`select 1`)
	batch.Queue(`insert into photos values (105, 1, 'x')`)
	refused("batch", r.SendBatch(ctx, &batch).Close())
	refused("tx", r.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos values (106, 1, 'x')`)
		return err
	}))
	afterEnd := map[string]func(tx pgx.Tx) error{
		"a string": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `commit; insert into photos values (107, 1, 'x')`)
			return err
		},
		"a string of three": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `commit; select 1; insert into photos values (108, 1, 'x')`)
			return err
		},
		"a batch": func(tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue(`commit`)
			b.Queue(`insert into photos values (109, 1, 'x')`)
			return tx.SendBatch(ctx, &b).Close()
		},
		"DO in a string": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `commit; do $$ begin commit; insert into shard_00003.photos values (110, 1, 'x'); end $$`)
			return err
		},
		"DO in a batch": func(tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue(`commit`)
			b.Queue(`do $$ begin commit; insert into shard_00003.photos values (111, 1, 'x'); end $$`)
			return tx.SendBatch(ctx, &b).Close()
		},
		"a string, where the session has the path of the shard": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select set_config('search_path', current_setting('search_path'), false); commit; insert into photos values (115, 1, 'x')`)
			return err
		},
		"DO in a string, where the session has the path of the shard": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select set_config('search_path', current_setting('search_path'), false); commit; select 1;
do $$ begin commit; insert into shard_00003.photos values (116, 1, 'x'); end $$`)
			return err
		},
		"a second transaction": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `commit; begin read write; insert into photos values (112, 1, 'x'); commit`)
			return err
		},
	}
	for what, write := range afterEnd {
		if err := r.Tx(ctx, pgx.TxOptions{}, write); err == nil {
			t.Errorf("%s after the end of a transaction was accepted", what)
		}
	}
	for _, end := range []string{
		`commit; insert into photos values (113, 1, 'x')`,
		`commit; do $$ begin commit; insert into shard_00003.photos values (114, 1, 'x'); end $$`,
	} {
		if err := r.Tx(ctx, pgx.TxOptions{CommitQuery: end}, func(pgx.Tx) error { return nil }); err == nil {
			t.Errorf("CommitQuery %s was accepted", end)
		}
	}
	err = r.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `set transaction read write`)
		return err
	})
	if err == nil {
		t.Error("a transaction was made to write")
	}
	if _, err := r.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadWrite}); err == nil {
		t.Error("a transaction that writes was begun")
	}
	if _, err := r.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id"}, nil); !errors.Is(err, router.ErrReadOnly) {
		t.Errorf("copy: %v", err)
	}
	var count int
	if err := b.plain.QueryRow(ctx, fmt.Sprintf(`select count(*) from %s.photos where id between 100 and 199`, b.shard(t, 3).Schema())).Scan(&count); err != nil || count != 0 {
		t.Errorf("%d rows were written, error %v", count, err)
	}
	if _, err := b.shard(t, 3).Exec(ctx, `update photos set owner = owner where id = 1`); err != nil {
		t.Errorf("the shard itself cannot write any more: %v", err)
	}
}

func TestHostsWithoutReplicasAreReadOnThePrimary(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	s := b.shard(t, 5)
	var title string
	if err := s.ReadOnly(router.Reads{}).QueryRow(ctx, `select title from photos`).Scan(&title); err != nil || title != "of shard 5" {
		t.Errorf("got %q, %v", title, err)
	}
	if _, err := s.ReadOnly(router.Reads{}).Exec(ctx, `delete from photos`); !errors.Is(err, router.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	err := s.ReadOnly(router.Reads{ReplicaOnly: true}).QueryRow(ctx, `select title from photos`).Scan(&title)
	if !errors.Is(err, router.ErrNoReplica) {
		t.Errorf("got %v", err)
	}
}

// TestLongAnswersOfReaders reads more than one part of an answer, whole and in part, also with a second server to win.
func TestLongAnswersOfReaders(t *testing.T) {
	t.Parallel()
	b, ctx := withReplicas(t, options{})
	b.awaitAll(ctx, t)
	for _, reads := range []router.Reads{{ReplicaOnly: true, Wait: time.Minute}, {ReplicaOnly: true, Wait: time.Minute, Hedge: 1}} {
		for range 2 { // of each replica
			r := b.shard(t, 1).ReadOnly(reads)
			rows, err := r.Query(ctx, `select i, repeat('x', 1000) from generate_series(1, 5000) as i`)
			if err != nil {
				t.Fatal(err)
			}
			var sum, i int
			var text string
			if _, err := pgx.ForEachRow(rows, []any{&i, &text}, func() error { sum += i; return nil }); err != nil || sum != 5000*5001/2 {
				t.Fatalf("got the sum %d, error %v", sum, err)
			}
			if tag := rows.CommandTag().String(); tag != "SELECT 5000" {
				t.Errorf("got the tag %q", tag)
			}
			rows, err = r.Query(ctx, `select i, repeat('x', 1000) from generate_series(1, 5000) as i`)
			if err != nil || !rows.Next() {
				t.Fatalf("no rows: %v", err)
			}
			rows.Close()
		}
	}
}

// TestReadersOfAnyRole reads as a role that may do nothing but read the tables.
func TestReadersOfAnyRole(t *testing.T) {
	t.Parallel()
	servers := theReplicated(t)
	on(t.Context(), t, servers.primary(), `create role plain_reader login password 'known';
		grant usage on schema shard_00000, shard_00002 to plain_reader; grant select on shard_00002.photos to plain_reader`)
	as := func(dsn string) string { return localpg.AsRole(dsn, "plain_reader", "known") }
	b, ctx := withReplicas(t, options{as: as})
	b.awaitAll(ctx, t)
	s := b.shard(t, 2)
	at, err := s.Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var owner int64
	reads := router.Reads{After: at, ReplicaOnly: true, Wait: time.Minute}
	if err := s.ReadOnly(reads).QueryRow(ctx, `select owner from photos where id = 1`).Scan(&owner); err != nil || owner != 2 {
		t.Errorf("got %d, error %v", owner, err)
	}
}

// A Reader writes in no transaction, whatever begins it.
func TestReaderThatChains(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	err := s.ReadOnly(router.Reads{}).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		for _, sql := range []string{`commit and chain`, `set transaction read write`, `delete from photos`} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if got := ask(ctx, t, s, `select count(*)::text from photos`); err == nil || got != "1" {
		t.Errorf("a reader has written: %s rows are left, %v", got, err)
	}
}
