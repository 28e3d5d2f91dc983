package router_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// onInsert has every insert of an entry run PL/pgSQL before.
func (b *testBundle) onInsert(ctx context.Context, t testing.TB, body string) {
	t.Helper()
	b.run(ctx, t, "create or replace function kiloshard.on_insert() returns trigger language plpgsql as $$ begin "+body+" end $$")
	for n := range shardCount {
		b.run(ctx, t, fmt.Sprintf(`create or replace trigger on_insert before insert on %s.kiloshard_directory
			for each row execute function kiloshard.on_insert()`, b.Map().Schema(shards.Number(n))))
	}
}

// total returns how many keys all shards count.
func (b *testBundle) total(ctx context.Context, t testing.TB) (total int64) {
	t.Helper()
	for n := range shardCount {
		total += b.usage(ctx, t, n)
	}
	return total
}

// A place that was taken is given back when there is surely no entry, and stays taken when nobody knows.
func TestAllocateFails(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{config: onlyDirectory})
	key := shards.TextKey("alice")
	attempt := func() error { _, err := b.ForNew(ctx, key); return err }

	b.onInsert(ctx, t, "raise exception 'not today'; return new;")
	if err := attempt(); err == nil || b.total(ctx, t) != 0 {
		t.Errorf("after an insert that was refused: %v, %d keys are counted", err, b.total(ctx, t))
	}
	b.onInsert(ctx, t, "perform pg_terminate_backend(pg_backend_pid()); return new;")
	if err := attempt(); err == nil || b.total(ctx, t) != 1 {
		t.Errorf("after a connection that broke: %v, %d keys are counted", err, b.total(ctx, t))
	}
	b.onInsert(ctx, t, "return new;")
	if err := attempt(); err != nil || b.total(ctx, t) != 2 {
		t.Errorf("in the end: %v, %d keys are counted, expected that of the broken one too", err, b.total(ctx, t))
	}
}

// Somebody else's entry comes between the look and the insert.
func TestAllocateLoses(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{config: onlyDirectory})
	b.onInsert(ctx, t, `if new.shard <> 63 then
		execute format('insert into %I.kiloshard_directory values ($1, 63)', tg_table_schema) using new.key;
	end if; return new;`)
	for i := range 10 {
		key := shards.TextKey(fmt.Sprint("user ", i))
		if s, err := b.ForNew(ctx, key); err != nil || s.Number() != 63 {
			t.Errorf("got %v, %v, expected the winner's shard 63", numberOf(s, err), err)
		}
		isIn(ctx, t, b, key, 63)
	}
	// A key that is put into shard 63 itself has no rival.
	if total := b.total(ctx, t); total != b.usage(ctx, t, 63) {
		t.Errorf("%d keys are counted, %d of them in shard 63", total, b.usage(ctx, t, 63))
	}
}

// A caller who leaves does not stop what has begun.
func TestAllocateGoesOn(t *testing.T) {
	t.Parallel()
	log := &queryLog{}
	b, ctx := setup(t, options{config: onlyDirectory, pool: log.watch})
	key := shards.TextKey("alice")
	tx, err := b.plain.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// The insert waits for this lock, the look before it does not.
	if _, err := tx.Exec(ctx, "lock table "+b.Map().Schema(b.Map().EntryShard(key))+".kiloshard_directory in share mode"); err != nil {
		t.Fatal(err)
	}
	leaving, leave := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() { _, err := b.ForNew(leaving, key); left <- err }()
	log.await(ctx, t, "insert into kiloshard_directory", 1)
	leave()
	if err := <-left; err == nil {
		t.Error("who left got a shard")
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := b.ForNew(ctx, key)
	if err != nil || b.usage(ctx, t, int(s.Number())) != 1 || b.total(ctx, t) != 1 {
		t.Errorf("got %v, %v; %d keys are counted", numberOf(s, err), err, b.total(ctx, t))
	}
	if n := log.count("insert into kiloshard_directory"); n != 1 {
		t.Errorf("%d inserts", n)
	}
}
