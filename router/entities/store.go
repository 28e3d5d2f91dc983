package entities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// ID is the 16 bytes of an entity's UUID.
type ID = [16]byte

// Entity is one entity as Postgres has it.
type Entity struct {
	ID      ID
	Body    json.RawMessage // an object
	AddedID int64           // rising in each shard
	Updated time.Time
}

// Store is entities and their indexes. It is safe for concurrent use.
type Store struct {
	r         *router.Router
	d         Definition
	indexes   []table // beside those of d
	projected string  // SQL: of a body, the properties that indexes read
	put, gone string  // statements
	grace     time.Duration

	counts Counts
	step   func(string) error // for tests: called between two writes
}

var (
	// ErrNotFound says that an entity is not there.
	ErrNotFound = errors.New("entity not found")
	// ErrTaken says that another entity has the values in a unique index.
	ErrTaken = errors.New("another entity has this value")
	// ErrNotIndexed says that an entity is written, and that its index rows are left to a cleaner.
	ErrNotIndexed = errors.New("the entity is written, and some of its index rows are left to the cleaner")
	// ErrTooLate says that an entity was not written, because writing rows of unique indexes before it took too long.
	ErrTooLate = errors.New("the entity is not written: its rows in unique indexes took too long")
	// ErrNoIndex says that the definition has no index of a name.
	ErrNoIndex = errors.New("no such index")
)

// defaultGrace is for how long the work of a writer is its own.
const defaultGrace = 6 * time.Second

// Open returns the entities of a definition. It asks no host. The error is a [shards.FieldError].
func Open(r *router.Router, d Definition) (*Store, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.Shards > r.Map().Len() {
		return nil, &shards.FieldError{Field: "shards", Found: fmt.Sprint(d.Shards), Expected: fmt.Sprintf("%d at most, as the map has", r.Map().Len())}
	}
	s := &Store{r: r, d: d, grace: defaultGrace, step: func(string) error { return nil }}
	var properties []string
	known := map[string]bool{}
	property := func(name string) {
		if !known[name] {
			known[name] = true
			text := "'" + strings.ReplaceAll(name, "'", "''") + "'"
			properties = append(properties, text+", %[1]s->"+text)
		}
	}
	for _, index := range d.Indexes {
		s.indexes = append(s.indexes, newTable(index))
		for _, p := range index.Properties {
			property(p.Name)
		}
		for name := range index.Where {
			property(strings.ReplaceAll(name, "%", "%%"))
		}
	}
	s.projected = "jsonb_build_object(" + strings.Join(properties, ", ") + ")"
	s.writes()
	return s, nil
}

func (s *Store) project(body string) string { return fmt.Sprintf(s.projected, body) }

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

// GetMany returns entities in the order of their IDs, each shard asked once, all of a host together. One that is not there is
// left out; one asked for twice is there twice. The error is a [shards.PartialError], with the entities of the other shards.
func (s *Store) GetMany(ctx context.Context, ids []ID) ([]Entity, error) {
	found, err := s.fetch(ctx, ids, "body")
	var all []Entity
	for _, id := range ids {
		if e, ok := found[id]; ok {
			all = append(all, e)
		}
	}
	return all, err
}

// fetch returns entities, of whose bodies it takes what an expression of SQL makes of them.
func (s *Store) fetch(ctx context.Context, ids []ID, body string) (map[ID]Entity, error) {
	of := map[shards.Number][]ID{}
	var numbers []shards.Number
	found := make(map[ID]Entity, len(ids))
	for _, id := range ids {
		if _, twice := found[id]; twice {
			continue
		}
		found[id] = Entity{}
		n := shards.MD5Shard(id[:], s.d.Shards)
		if of[n] == nil {
			numbers = append(numbers, n)
		}
		of[n] = append(of[n], id)
	}
	clear(found)
	all, err := many.Collect(ctx, s.r, shards.SetOf(numbers...), many.Query[Entity]{
		SQL: `select id, ` + body + `::text, added_id, updated from entities where id = any($1)`,
		Own: func(n shards.Number) []any { return []any{of[n]} },
		Scan: func(row pgx.CollectableRow) (e Entity, err error) {
			return e, row.Scan(&e.ID, (*[]byte)(&e.Body), &e.AddedID, &e.Updated)
		},
	})
	for _, e := range all {
		found[e.ID] = e
	}
	return found, err
}
