package mapsql

import (
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// Helper is the name of the helper schema, which every host has.
const Helper = "kiloshard"

// Params returns the parameters that the SQL scripts of a map are rendered with.
func Params(m *shards.Map) sql.Params {
	c := m.Config()
	return sql.Params{
		Cluster:      c.Cluster,
		SchemaPrefix: c.SchemaPrefix,
		Epoch:        c.Epoch,
		End:          c.Layout.End(c.Epoch),
		TimeBits:     c.Layout.TimeBits(),
		ShardBits:    c.Layout.Shard,
		TypeBits:     c.Layout.Type,
		SequenceBits: c.Layout.Sequence,
	}
}

// Pattern returns a regular expression that matches the names of the schemas of shards.
func Pattern(m *shards.Map) string { return "^" + m.Config().SchemaPrefix + "[0-9]+$" }

// Keys returns the map's strategy, as hosts record it.
func Keys(m *shards.Map) string {
	id, _ := m.Hosts()[0].Identity()
	return id.Keys
}
