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

// Entity is one entity, as stored in Postgres.
type Entity struct {
	ID      ID
	Body    json.RawMessage // an object
	AddedID int64           // rising in each shard
	Updated time.Time
}

// Store stores entities and their indexes. It is safe for concurrent use.
type Store struct {
	r         *router.Router
	d         Definition
	indexes   []table // in the order of d.Indexes
	projected string  // SQL expression: the properties of a body that indexes use
	put, gone string  // statements that write and delete an entity
	grace     time.Duration

	counts Counts
	step   func(string) error // for tests: called between two writes
}

var (
	// ErrNotFound means that there is no such entity.
	ErrNotFound = errors.New("entity not found")
	// ErrTaken means that another entity has the values in a unique index.
	ErrTaken = errors.New("another entity has this value")
	// ErrNotIndexed means that an entity is written, but a cleaner must write some of its index rows.
	ErrNotIndexed = errors.New("the entity is written, and some of its index rows are left to the cleaner")
	// ErrTooLate means that an entity was not written, because writing its rows in unique indexes took too long.
	ErrTooLate = errors.New("the entity is not written: its rows in unique indexes took too long")
	// ErrNoIndex means that the definition has no index with the name.
	ErrNoIndex = errors.New("no such index")
)

// defaultGrace is how long a writer owns its work.
const defaultGrace = 6 * time.Second

// Open returns the store of a definition. It queries no host. The error is a [shards.FieldError].
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

// GetMany returns entities in the order of ids. It queries each shard once, and all shards of a host together. A missing
// entity is skipped. A repeated ID repeats its entity. The error is a [shards.PartialError]; the entities of the other shards
// come with it.
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

// fetch returns entities. body is the SQL expression that it selects as their bodies.
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
