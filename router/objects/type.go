package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Type is the store of objects of one type. T holds the fields of an object: a struct, stored as JSON by encoding/json. A Type is
// safe for concurrent use.
type Type[T any] struct {
	r       *router.Router
	t       shards.ObjectType
	options Options[T]
	checked bool // no field of T has the name of the mark of deleted objects
	open    *atomic.Pointer[openShards]
	in      transaction

	insert, get, lock, update, mark, unmark, purge string

	few, many string // the queries of GetMany, for up to 4 objects and for any number
}

// Options are options of a [Type].
type Options[T any] struct {
	// New returns the T into which a document is decoded. It has the values of fields that the document lacks. Defaults to
	// the zero T.
	New func() T
	// Cache is used by Get and GetMany. Defaults to none.
	Cache Cache
}

// Object is one object.
type Object[T any] struct {
	ID     shards.ID
	Fields T
	At     time.Time // time of its creation or last change
}

// Open returns the store of a type of the map. It returns [ErrType] if the map has no such type, and a [shards.FieldError] for a
// T with a field named active, because the store uses that name.
func Open[T any](r *router.Router, name string, options Options[T]) (*Type[T], error) {
	t, err := typeOf(r, name)
	if err != nil {
		return nil, err
	}
	checked, err := checkFields[T]()
	if err != nil {
		return nil, err
	}
	table := pgx.Identifier{tableOf(name)}.Sanitize()
	const active = ` data->'active' is distinct from 'false'`
	o := &Type[T]{
		r: r, t: t, options: options, checked: checked, open: new(atomic.Pointer[openShards]),
		insert: `insert into ` + table + ` (data) values ($1) returning local_id, ts`,
		get:    `select data::text, ts from ` + table + ` where local_id = $1 and` + active,
		lock:   `select data::text, ts from ` + table + ` where local_id = $1 and` + active + ` for update`,
		update: `update ` + table + ` set data = $2, ts = now() where local_id = $1 returning ts`,
		mark:   `update ` + table + ` set data = data || '{"active": false}', ts = now() where local_id = $1 and` + active,
		unmark: `update ` + table + ` set data = data - 'active', ts = now() where local_id = $1 and data->'active' = 'false'`,
		purge:  `delete from ` + table + ` where local_id = $1`,
	}
	several := `select local_id, data::text, ts from ` + table + ` where local_id %s and` + active
	o.few, o.many = fmt.Sprintf(several, `in ($1, $2, $3, $4)`), fmt.Sprintf(several, `= any($1)`)
	return o, nil
}

// Create inserts an object into any shard of a host that is not closed, and returns it with its ID: hosts get new objects in proportion to
// their weights, and the shards of a host alike. Where the map's strategy counts keys that the shards make, [router.Router.NewShard]
// chooses, with the capacities of hosts. Create returns the errors of a [router.Shard], and [router.ErrFull] if all hosts
// are closed. After [router.ErrLost] the object may have been created.
func (t *Type[T]) Create(ctx context.Context, fields T) (Object[T], error) {
	shard, err := t.newShard(ctx)
	if err != nil {
		return Object[T]{}, err
	}
	return t.CreateIn(ctx, shard, fields)
}

// CreateNear inserts an object into the shard of another one, such as a pin into the shard of its board. See [Type.Create].
func (t *Type[T]) CreateNear(ctx context.Context, near shards.ID, fields T) (Object[T], error) {
	p, err := Locate(t.r, near)
	if err != nil {
		return Object[T]{}, err
	}
	return t.CreateIn(ctx, p.Shard, fields)
}

// CreateIn inserts an object into a shard. See [Type.Create].
func (t *Type[T]) CreateIn(ctx context.Context, shard router.Shard, fields T) (Object[T], error) {
	on, err := t.in.on(shard)
	if err != nil {
		return Object[T]{}, err
	}
	text, err := t.document(fields)
	if err != nil {
		return Object[T]{}, err
	}
	return t.created(shard, fields, on.QueryRow(ctx, t.insert, text))
}

// CreateMany inserts objects into one shard, in one transaction and one message: all of them or none. It returns them with their IDs, in
// their order. See [Type.Create].
func (t *Type[T]) CreateMany(ctx context.Context, shard router.Shard, all []T) ([]Object[T], error) {
	on, err := t.in.on(shard)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var batch pgx.Batch
	for i, fields := range all {
		text, err := t.document(fields)
		if err != nil {
			return nil, fmt.Errorf("object %d of %d: %w", i+1, len(all), err)
		}
		batch.Queue(t.insert, text)
	}
	answers := on.SendBatch(ctx, &batch)
	created := make([]Object[T], len(all))
	for i, fields := range all {
		if created[i], err = t.created(shard, fields, answers.QueryRow()); err != nil {
			break
		}
	}
	if closing := answers.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	return created, nil
}

// document returns the document of a new object.
func (t *Type[T]) document(fields T) (string, error) {
	text, err := encode(fields)
	if err == nil && !t.checked {
		var document any
		if err = json.Unmarshal([]byte(text), &document); err == nil {
			err = checkMark(nil, document)
		}
	}
	return text, err
}

// created returns a new object, whose row is the answer to its insert.
func (t *Type[T]) created(shard router.Shard, fields T, row pgx.Row) (Object[T], error) {
	o, parts := Object[T]{Fields: fields}, shards.Parts{Shard: shard.Number(), Type: t.t.Number}
	err := row.Scan(&parts.Sequence, &o.At)
	if err == nil {
		o.ID, err = Layout.Compose(parts)
	}
	if err != nil {
		return Object[T]{}, err
	}
	return o, nil
}

// Get returns an object. It returns [ErrNotFound] for an object that does not exist or is deleted, [ErrType] for an ID of another
// type, [shards.ErrNoShard] for an ID that no object can have, and otherwise the errors of a [router.Shard]. With a cache, the
// object may be as old as the cache allows.
func (t *Type[T]) Get(ctx context.Context, id shards.ID) (Object[T], error) {
	if t.options.Cache != nil && t.in.tx == nil {
		all, err := t.GetMany(ctx, []shards.ID{id})
		if err == nil && len(all) == 0 {
			err = notFound(id)
		}
		if err != nil {
			return Object[T]{}, err
		}
		return all[0], nil
	}
	p, err := locate(t.r, t.t, id)
	if err != nil {
		return Object[T]{}, err
	}
	on, err := t.in.on(p.Shard)
	if err != nil {
		return Object[T]{}, err
	}
	o, _, err := t.scan(id, on.QueryRow(ctx, t.get, p.Local))
	return o, err
}

// scan reads the document of a row and its time.
func (t *Type[T]) scan(id shards.ID, row pgx.Row) (o Object[T], document []byte, err error) {
	o.ID = id
	err = row.Scan(&document, &o.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return Object[T]{}, nil, notFound(id)
	}
	if err == nil {
		o.Fields, err = t.decode(document)
	}
	return o, document, err
}

func notFound(id shards.ID) error { return fmt.Errorf("object %d: %w", id, ErrNotFound) }
