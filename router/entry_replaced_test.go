package router_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/router"
)

// replaced has another schema take the place of shard 5: its rows have other owners, and the title new.
const replaced = `alter schema shard_00005 rename to shard_00005_before; create schema shard_00005;
create table shard_00005.photos (like shard_00005_before.photos including all);
insert into shard_00005.photos select id, 500 + owner, 'new' from shard_00005_before.photos;
alter sequence shard_00005_before.next_id_seq set schema shard_00005;
alter function shard_00005_before.next_id() set schema shard_00005;`

// A schema of the shard's name takes the place of the one that entries have found: every call goes on in it.
func TestSchemaReplaced(t *testing.T) {
	t.Parallel()
	checkReplaced(t, replaced, func(ctx context.Context, t *testing.T, b *testBundle, call shardCall) {
		t.Helper()
		s := b.shard(t, 5)
		if err := call(ctx, s); err != nil {
			t.Error(err)
		}
		if err := togetherInNew(ctx, s); err != nil {
			t.Error(err)
		}
	})
}

// The copy of a shard that is on its way takes the place of the schema that entries have found: no call reads or writes it.
func TestSchemaReplacedByFence(t *testing.T) {
	t.Parallel()
	const byFence = replaced + `
alter sequence shard_00005.next_id_seq rename to kiloshard_arriving_seq;
create view shard_00005.kiloshard_moved as select 'pg-b' as target, now() as fenced;`
	checkReplaced(t, byFence, func(ctx context.Context, t *testing.T, b *testBundle, call shardCall) {
		t.Helper()
		time.Sleep(router.KeepFor) // no copy arrives sooner where the shard was
		for range 3 {
			if err := call(ctx, b.shard(t, 5)); !errors.Is(err, router.ErrMoved) {
				t.Errorf("got %v, expected ErrMoved", err)
			}
		}
		b.run(ctx, t, `do $$ begin
	if exists (select from shard_00005.photos where owner < 500 or title <> 'new') then raise 'a call has written to the copy'; end if; end $$`)
	})
}

// checkReplaced checks each call after SQL that replaces the schema of shard 5, which the sessions know by then.
func checkReplaced(t *testing.T, replace string, check checkOfOne) {
	t.Helper()
	for name, call := range movedCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 2})
			callOften(ctx, t, b.shard(t, 5), call)
			b.run(ctx, t, `begin; `+replace+` commit`)
			check(ctx, t, b, call)
		})
	}
}

// togetherInNew reads a row in twenty calls at once, each of which must be that of the new schema.
func togetherInNew(ctx context.Context, s router.Shard) error {
	var group errgroup.Group
	for range 20 {
		group.Go(func() error {
			rows, err := s.Query(ctx, `select owner from photos where owner < 500`)
			if err != nil {
				return err
			}
			old, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err == nil && len(old) > 1 { // the call may have added one
				return fmt.Errorf("rows of the old schema: %d", old)
			}
			return err
		})
	}
	return group.Wait()
}
