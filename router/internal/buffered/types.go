package buffered

import (
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgtype"
)

// Types lends type maps to callers that read an answer while its connection works for another caller:
// a pgtype.Map is for one goroutine at a time. All are copies of what the connections of the host know.
type Types struct {
	base atomic.Pointer[pgtype.Map] // as of the newest connection; never used but to be copied
	free sync.Pool                  // of *typeMap
}

// typeMap is a type map for one caller.
type typeMap struct {
	*pgtype.Map
	base  *pgtype.Map
	owned map[uint32]bool
}

// firstUserOID is the smallest OID that Postgres gives to a user's object.
const firstUserOID = 16384

// Set takes over a connection's type map, which must not be in use.
func (m *Types) Set(types *pgtype.Map) { m.base.Store(copyMap(types)) }

func copyMap(m *pgtype.Map) *pgtype.Map {
	c := m.Copy()
	c.TryWrapEncodePlanFuncs = m.TryWrapEncodePlanFuncs
	c.TryWrapScanPlanFuncs = m.TryWrapScanPlanFuncs
	return c
}

func (m *Types) borrow() *typeMap {
	base := m.base.Load()
	if t, ok := m.free.Get().(*typeMap); ok && t.base == base {
		return t
	}
	return &typeMap{Map: copyMap(base), base: base}
}

func (m *Types) giveBack(t *typeMap) { m.free.Put(t) }

// own makes sure that a type of the user's can be read without a look at what other maps share: some codecs remember
// what they have read.
func (t *typeMap) own(oid uint32) *pgtype.Map {
	if oid < firstUserOID || t.owned[oid] {
		return t.Map
	}
	if known, ok := t.TypeForOID(oid); ok {
		t.RegisterType(ownType(known))
	}
	if t.owned == nil {
		t.owned = make(map[uint32]bool)
	}
	t.owned[oid] = true
	return t.Map
}

// ownType copies a type as far as its codec, or one of its parts', is one that remembers.
func ownType(t *pgtype.Type) *pgtype.Type {
	c := *t
	switch codec := t.Codec.(type) {
	case *pgtype.EnumCodec:
		c.Codec = &pgtype.EnumCodec{}
	case *pgtype.ArrayCodec:
		c.Codec = &pgtype.ArrayCodec{ElementType: ownType(codec.ElementType)}
	case *pgtype.RangeCodec:
		c.Codec = &pgtype.RangeCodec{ElementType: ownType(codec.ElementType)}
	case *pgtype.MultirangeCodec:
		c.Codec = &pgtype.MultirangeCodec{ElementType: ownType(codec.ElementType)}
	case *pgtype.CompositeCodec:
		fields := make([]pgtype.CompositeCodecField, len(codec.Fields))
		for i, field := range codec.Fields {
			fields[i] = pgtype.CompositeCodecField{Name: field.Name, Type: ownType(field.Type)}
		}
		c.Codec = &pgtype.CompositeCodec{Fields: fields}
	}
	return &c
}
