package catalog

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// Sequence is the content of pg_sequence and pg_class for a sequence.
type Sequence struct {
	Type        string
	Start       int64
	Increment   int64
	Min         int64
	Max         int64
	Cache       int64
	Cycle       bool
	Persistence string // permanent, unlogged or temporary
}

// SequenceColumns are the columns of pg_sequence s and pg_class c for the [Sequence.Targets]. Without a sequence they
// describe another kind of relation, or none.
const SequenceColumns = `coalesce(format_type(s.seqtypid, NULL), ''), coalesce(s.seqstart, 0), coalesce(s.seqincrement, 0),
	coalesce(s.seqmin, 0), coalesce(s.seqmax, 0), coalesce(s.seqcache, 0), coalesce(s.seqcycle, false),
	CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END`

// OtherSetters are two arguments of concat_ws: the roles, other than the owner of schema sn, that can set sequence c
// there and so repeat IDs.
const OtherSetters = `CASE WHEN c.relowner <> sn.nspowner THEN 'it belongs to role ' || c.relowner::regrole END,
				(SELECT string_agg('role ' || coalesce(r.rolname, 'PUBLIC') || ' may set it', ', ' ORDER BY r.rolname)
				FROM aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
				WHERE a.privilege_type = 'UPDATE' AND a.grantee <> c.relowner)`

// Targets returns the scan targets of [SequenceColumns].
func (s *Sequence) Targets() []any {
	return []any{&s.Type, &s.Start, &s.Increment, &s.Min, &s.Max, &s.Cache, &s.Cycle, &s.Persistence}
}

// String describes a sequence in a message.
func (s Sequence) String() string {
	return fmt.Sprintf("type %s, start %d, increment %d, minimum %d, maximum %d, cache %d, cycle %t, %s",
		s.Type, s.Start, s.Increment, s.Min, s.Max, s.Cache, s.Cycle, s.Persistence)
}

// IDSequenceName is the name of the sequence of each shard's next_id().
const IDSequenceName = "next_id_seq"

// IDSequence returns the sequence that makes IDs of a map.
func IDSequence(m *shards.Map) Sequence {
	return Sequence{
		Type: "bigint", Start: 1, Increment: 1, Min: 1, Max: m.Layout().MaxSequenceValue(), Cache: 1, Persistence: "permanent",
	}
}
