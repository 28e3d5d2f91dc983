package entities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
)

// ErrInUse means that programs still write an index.
var ErrInUse = errors.New("programs still write the index")

// Release lets programs write that do not know an index any more. It is the first step of dropping the index. The definition
// of the store must have it. Errors are [ErrNoIndex] and those of [many.Each].
func (s *Store) Release(ctx context.Context, name string) error {
	if err := s.Index(name).err; err != nil {
		return err
	}
	return s.everywhere(ctx, `update entity_indexes set required = false, filled = false, run = null where name = $1`, name)
}

// Drop drops the table of an index that was released, and that the definition of the store does not have any more. It watches
// the versions of its rows for a while, and returns [ErrInUse] if one is written. Then no program may write the index any
// more: one that still has it in its definition gets a [DefinitionError]. Other errors are [ErrNoIndex] if no shard has the
// index, and those of [many.Each]. After an error the caller may call Drop again.
func (s *Store) Drop(ctx context.Context, name string, watch time.Duration) error {
	if s.Index(name).err == nil {
		return fmt.Errorf("%s: remove it from the definition first: %w", name, ErrInUse)
	}
	all, err := s.Indexes(ctx)
	if err != nil {
		return err
	}
	found := IndexState{}
	for _, i := range all {
		if i.Name == name {
			found = i
		}
	}
	if found.Name == "" {
		return fmt.Errorf("%s: %w", name, ErrNoIndex)
	}
	if !found.Retired {
		if err := s.watch(ctx, name, watch); err != nil {
			return err
		}
	}
	if err := s.everywhere(ctx, `update entity_indexes set retired = true where name = $1`, name); err != nil {
		return err
	}
	if err := many.Each(ctx, s.r, s.all(), many.Options{}, awaitWriters); err != nil {
		return err
	}
	if err := s.step("drop"); err != nil {
		return err
	}
	// The index may have rows of entities in other shards. So all shards refuse to write it before the first table is gone.
	return many.Each(ctx, s.r, s.all(), many.Options{}, func(ctx context.Context, shard router.Shard) error {
		_, err := shard.Exec(ctx, "drop table if exists "+quoted(name)+"; delete from entity_indexes where name = '"+name+"'")
		return err
	})
}

// watch returns [ErrInUse] if the rows of an index change.
func (s *Store) watch(ctx context.Context, name string, watch time.Duration) error {
	newest := func() (map[int64]bool, error) {
		all, err := many.Collect(ctx, s.r, s.all(), many.Query[int64]{
			SQL: `select coalesce(max(entity_version), 0) from ` + quoted(name), Scan: pgx.RowTo[int64],
		})
		versions := map[int64]bool{}
		for _, v := range all {
			versions[v] = true
		}
		return versions, err
	}
	before, err := newest()
	if err == nil {
		err = s.step("watch")
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(watch):
	}
	after, err := newest()
	for v := range after {
		if !before[v] {
			return fmt.Errorf("%s: %w", name, ErrInUse)
		}
	}
	return err
}

func (s *Store) everywhere(ctx context.Context, query, name string) error {
	return many.Each(ctx, s.r, s.all(), many.Options{}, func(ctx context.Context, shard router.Shard) error {
		_, err := shard.Exec(ctx, query, name)
		return err
	})
}
