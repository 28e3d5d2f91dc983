package objects

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Layout is the layout of the IDs of objects: two bits that are 0, then 16 bits of shard, 10 of type and 36 of row.
var Layout = shards.Layout{Shard: 16, Type: 10, Sequence: 36}

var (
	// ErrNotFound says that an object or a row does not exist, or that the object is deleted.
	ErrNotFound = errors.New("not found")
	// ErrType says that the map has no such type of objects, or that an ID is of another type.
	ErrType = errors.New("no such type of objects")
)

// Place is where an object is.
type Place struct {
	Shard router.Shard
	Type  shards.ObjectType
	Local int64 // the local_id in the table
	Table string
}

// Locate returns the place of the object with an ID, whether the object exists or not. It queries no host. It returns
// [shards.ErrNoShard] or [ErrType] for an ID that no object can have.
func Locate(r *router.Router, id shards.ID) (Place, error) {
	p := Layout.Parts(id)
	if id <= 0 || p.Milliseconds != 0 {
		return Place{}, fmt.Errorf("ID %d: expected 0 in the two highest bits: %w", id, shards.ErrNoShard)
	}
	shard, err := r.ForShard(p.Shard)
	if err != nil {
		return Place{}, fmt.Errorf("ID %d: %w", id, err)
	}
	types := r.Map().Types()
	i := slices.IndexFunc(types, func(t shards.ObjectType) bool { return t.Number == p.Type })
	if i < 0 {
		return Place{}, fmt.Errorf("ID %d is of type %d: %w", id, p.Type, ErrType)
	}
	return Place{shard, types[i], p.Sequence, tableOf(types[i].Name)}, nil
}

// typeOf returns the type with a name.
func typeOf(r *router.Router, name string) (shards.ObjectType, error) {
	types := r.Map().Types()
	i := slices.IndexFunc(types, func(t shards.ObjectType) bool { return t.Name == name })
	if i < 0 {
		return shards.ObjectType{}, fmt.Errorf("%q, of the map's types: %w", name, ErrType)
	}
	return types[i], nil
}

// locate returns the place of an object of a type.
func locate(r *router.Router, t shards.ObjectType, id shards.ID) (Place, error) {
	p, err := Locate(r, id)
	if err == nil && p.Type.Number != t.Number {
		err = fmt.Errorf("ID %d is of type %s, not %s: %w", id, p.Type.Name, t.Name, ErrType)
	}
	return p, err
}
