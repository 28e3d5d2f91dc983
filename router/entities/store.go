package entities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// ID is the 16 bytes of an entity's UUID.
type ID = [16]byte

// Entity is one entity, as stored in Postgres.
type Entity struct {
	ID      ID
	Body    json.RawMessage // an object
	AddedID int64           // rising in each shard
	Updated time.Time
}

// Store stores entities and their indexes. It is safe for concurrent use.
type Store struct {
	r           *router.Router
	d           Definition
	indexes     []table  // in the order of d.Indexes
	paths       []string // of the properties that indexes use
	definitions []string // see [Definition.fingerprints]

	put, commit, gone, plainPut, plainGone string // statements that write and delete an entity

	counts Counts
	step   func(string) error // for tests: called between two writes
}

var (
	// ErrNotFound means that there is no such entity.
	ErrNotFound = errors.New("entity not found")
	// ErrTaken means that another entity has the values in a unique index, or that a Put of it is about to write them.
	ErrTaken = errors.New("another entity has this value")
	// ErrTooLong means that the texts of an index row have more than 2000 bytes together.
	ErrTooLong = fmt.Errorf("the texts of an index row have more than %d bytes", maxTexts)
	// ErrNotIndexed means that an entity is written, but a cleaner must write some of its index rows.
	ErrNotIndexed = errors.New("the entity is written, and some of its index rows are left to the cleaner")
	// ErrNoIndex means that the definition has no index with the name.
	ErrNoIndex = errors.New("no such index")
)

// Open returns the store of a definition. It compares the definition with that of all shards, and returns a [DefinitionError]
// if one has another. It skips hosts that are down, unless all are: writers compare the definition again. Other errors are a
// [shards.FieldError] and those of [many.Collect].
func Open(ctx context.Context, r *router.Router, d Definition) (*Store, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.Shards > r.Map().Len() {
		return nil, wrong("shards", fmt.Sprint(d.Shards), fmt.Sprintf("%d at most, as the map has", r.Map().Len()))
	}
	s := &Store{r: r, d: d, definitions: d.fingerprints(), step: func(string) error { return nil }}
	s.paths = d.paths(func(IndexDefinition) bool { return true })
	for _, index := range d.Indexes {
		s.indexes = append(s.indexes, newTable(index))
	}
	s.statements()
	return s, s.compare(ctx)
}

// project returns a SQL expression: the indexed properties of a body. See [projected].
func (s *Store) project(body string) string { return project(s.paths, body) }

// all returns the shards that have entities.
func (s *Store) all() shards.Set {
	return shards.SetOfRanges(shards.Range{First: 0, Last: shards.Number(s.d.Shards - 1)})
}

// shard returns the shard of an entity.
func (s *Store) shard(id ID) (router.Shard, error) {
	return s.r.ForShard(shards.MD5Shard(id[:], s.d.Shards))
}

// Get returns an entity, or [ErrNotFound]. Other errors are those of a [router.Shard].
func (s *Store) Get(ctx context.Context, id ID) (Entity, error) {
	shard, err := s.shard(id)
	if err != nil {
		return Entity{}, err
	}
	var e Entity
	err = shard.QueryRow(ctx, `select id, body::text, added_id, updated from entities where id = $1`, id).Scan(&e.ID, (*[]byte)(&e.Body), &e.AddedID, &e.Updated)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	return e, err
}

// GetMany returns entities in the order of ids. It queries each shard once, and all shards of a host together. A missing
// entity is skipped. A repeated ID repeats its entity. The error is a [shards.PartialError]; the entities of the other shards
// come with it.
func (s *Store) GetMany(ctx context.Context, ids []ID) ([]Entity, error) {
	found, err := s.fetch(ctx, ids)
	var all []Entity
	for _, id := range ids {
		if e, ok := found[id]; ok {
			all = append(all, e)
		}
	}
	return all, err
}

func (s *Store) fetch(ctx context.Context, ids []ID) (map[ID]Entity, error) {
	numbers, of := s.byShard(ids)
	all, err := many.Collect(ctx, s.r, numbers, many.Query[Entity]{
		SQL: `select id, body::text, added_id, updated from entities where id = any($1)`,
		Own: func(n shards.Number) []any { return []any{of[n]} },
		Scan: func(row pgx.CollectableRow) (e Entity, err error) {
			return e, row.Scan(&e.ID, (*[]byte)(&e.Body), &e.AddedID, &e.Updated)
		},
	})
	found := make(map[ID]Entity, len(all))
	for _, e := range all {
		found[e.ID] = e
	}
	return found, err
}

// byShard returns the shards of entities, and the entities of each, each once.
func (s *Store) byShard(ids []ID) (shards.Set, map[shards.Number][]ID) {
	of, known := map[shards.Number][]ID{}, make(map[ID]bool, len(ids))
	var numbers []shards.Number
	for _, id := range ids {
		if known[id] {
			continue
		}
		known[id] = true
		n := shards.MD5Shard(id[:], s.d.Shards)
		if of[n] == nil {
			numbers = append(numbers, n)
		}
		of[n] = append(of[n], id)
	}
	return shards.SetOf(numbers...), of
}

// state is what an entity has in its indexes.
type state struct {
	version int64 // 0 if there is no entity
	properties
	claims bool // a Put may be about to write it
}

// look returns the states of entities. It sees all writers that had written an index row before it was called: a writer that is
// about to write an entity has its row in entity_work first.
func (s *Store) look(ctx context.Context, ids []ID) (map[ID]state, error) {
	type found struct {
		id ID
		state
	}
	numbers, of := s.byShard(ids)
	all, err := many.Collect(ctx, s.r, numbers, many.Query[found]{
		SQL: `select i.id, coalesce(e.version, 0), case when e.id is not null then ` + s.project("e.body") + `::text end,
				exists (select from entity_work w where w.entity_id = i.id and w.state = 'claims')
			from unnest($1::uuid[]) i (id) left join entities e on e.id = i.id`,
		Own: func(n shards.Number) []any { return []any{of[n]} },
		Scan: func(row pgx.CollectableRow) (f found, err error) {
			var text []byte
			if err := row.Scan(&f.id, &f.version, &text, &f.claims); err != nil {
				return f, err
			}
			f.properties, err = projected(text)
			return f, err
		},
	})
	states := make(map[ID]state, len(all))
	for _, f := range all {
		states[f.id] = f.state
	}
	return states, err
}
