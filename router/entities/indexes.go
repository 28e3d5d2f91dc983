package entities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// isKnown is a SQL condition: the definitions of the program, $2, are those of the shard. The program must know the indexes that
// are required, and all of its own must be there.
const isKnown = `(select count(*) filter (where is_own and not retired) = cardinality($2::text[]) and count(*) filter (where required and not is_own) = 0
	from (select required, retired, name || ' ' || definition = any ($2::text[]) as is_own from entity_indexes) i)`

// DefinitionError means that a shard has another definition of the entities or of an index. Nothing was read or written.
type DefinitionError struct {
	Shard   shards.Number
	Name    string // of the index, or "entities"
	Problem string
}

// Error names the shard, the index and the problem.
func (e *DefinitionError) Error() string {
	return fmt.Sprintf("shard %d: definition of %s: %s", e.Shard, e.Name, e.Problem)
}

// IndexState is what a shard says of an index.
type IndexState struct {
	Name     string
	Required bool // all programs that write must know the index
	Retired  bool // none may
	Filled   bool // the index has rows of all entities of the shard

	definition, made, run string
	next, refused         int64
}

const readIndexes = `select name, definition, required, retired, filled, made::text, coalesce(run, ''), next_id, refused from entity_indexes`

func scanIndex(row pgx.CollectableRow) (i IndexState, err error) {
	return i, row.Scan(&i.Name, &i.definition, &i.Required, &i.Retired, &i.Filled, &i.made, &i.run, &i.next, &i.refused)
}

// Indexes returns the indexes of all shards, with those that the definition of the store does not have. A flag is set only if
// it is set in all shards that have the index, and Retired if it is in one. Errors are those of [many.Collect].
func (s *Store) Indexes(ctx context.Context) ([]IndexState, error) {
	all, err := many.Collect(ctx, s.r, s.all(), many.Query[IndexState]{SQL: readIndexes + ` order by name`, Scan: scanIndex})
	var sum []IndexState
	for _, i := range all {
		if i.Name == entitiesName {
			continue
		}
		k := slices.IndexFunc(sum, func(o IndexState) bool { return o.Name == i.Name })
		if k < 0 {
			sum = append(sum, IndexState{i.Name, i.Required, i.Retired, i.Filled, "", "", "", 0, 0})
			continue
		}
		sum[k].Required, sum[k].Filled, sum[k].Retired = sum[k].Required && i.Required, sum[k].Filled && i.Filled, sum[k].Retired || i.Retired
	}
	return sum, err
}

// compare compares the definition with that of all shards, and records the number of shards in those that have none.
func (s *Store) compare(ctx context.Context) error {
	groups, err := many.CollectByShard(ctx, s.r, s.all(), many.Query[IndexState]{SQL: readIndexes, Scan: scanIndex})
	for _, g := range groups {
		if err := s.differs(g.Shard.Number(), g.Rows); err != nil {
			return err
		}
	}
	var ofServer *pgconn.PgError
	if err != nil && (len(groups) == 0 || errors.As(err, &ofServer)) {
		return err
	}
	for _, g := range groups {
		if isNew(g.Rows) {
			if err := s.record(ctx, g.Shard); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNew reports whether a shard has no number of shards yet.
func isNew(all []IndexState) bool {
	return slices.ContainsFunc(all, func(i IndexState) bool { return i.Name == entitiesName && i.definition == "" })
}

// record records the number of shards in a shard that has none.
func (s *Store) record(ctx context.Context, shard router.Shard) error {
	_, err := shard.Exec(ctx, `update entity_indexes set definition = $2 where name = $1 and definition = ''`, entitiesName, fmt.Sprint(s.d.Shards))
	return err
}

// compareShard compares the definition with that of a shard, and reports whether the shard had no number of shards until now.
func (s *Store) compareShard(ctx context.Context, shard router.Shard) (recorded bool, err error) {
	found, err := shard.Query(ctx, readIndexes)
	if err != nil {
		return false, err
	}
	all, err := pgx.CollectRows(found, scanIndex)
	if err == nil {
		err = s.differs(shard.Number(), all)
	}
	if err == nil && isNew(all) {
		return true, s.record(ctx, shard)
	}
	return false, err
}

// mismatch returns why a shard has refused a statement; nil if the caller may send it again.
func (s *Store) mismatch(ctx context.Context, shard router.Shard) error {
	recorded, err := s.compareShard(ctx, shard)
	if err == nil && !recorded {
		err = &DefinitionError{shard.Number(), entitiesName, "its transactions are not read committed, or it was just changed"}
	}
	return err
}

// differs compares the definitions of a shard with those of the store.
func (s *Store) differs(n shards.Number, all []IndexState) error {
	fail := func(name, format string, args ...any) error {
		return &DefinitionError{n, name, fmt.Sprintf(format, args...)}
	}
	for _, i := range all {
		own := slices.IndexFunc(s.d.Indexes, func(d IndexDefinition) bool { return d.Name == i.Name })
		switch {
		case i.Name == entitiesName:
			if i.definition != "" && i.definition != fmt.Sprint(s.d.Shards) {
				return fail(i.Name, "the number of shards is %s, and %d here", i.definition, s.d.Shards)
			}
		case own < 0 && i.Required:
			return fail(i.Name, "all programs must know it, and it is missing here")
		case own < 0:
		case i.Retired:
			return fail(i.Name, "it is being dropped, and no program may use it")
		case s.d.Indexes[own].fingerprint() != i.definition:
			return fail(i.Name, "the shard has another one")
		}
	}
	for _, d := range append([]IndexDefinition{{Name: entitiesName}}, s.d.Indexes...) {
		if !slices.ContainsFunc(all, func(i IndexState) bool { return i.Name == d.Name }) {
			return fail(d.Name, "it is missing there")
		}
	}
	return nil
}
