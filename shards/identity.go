package shards

import "time"

// Identity describes the cluster that a host's shards belong to: what its table kiloshard.settings holds, and what a map
// expects there.
type Identity struct {
	Cluster      string
	SchemaPrefix string
	Epoch        time.Time // the zero time for a layout without a time
	Layout       Layout    // in usable bits: the time without the bit of the sign
	Keys         string    // what decides the shard of a key: the strategy with its divisors, as in kiloshard.yaml
}

// identity returns the identity that hosts of the config's cluster have.
func (c Config) identity() *Identity {
	l := c.Layout
	id := &Identity{Cluster: c.Cluster, SchemaPrefix: c.SchemaPrefix, Layout: Layout{Time: l.TimeBits(), Shard: l.Shard, Type: l.Type, Sequence: l.Sequence}, Keys: keysOf(c.Strategy, c.Shards)}
	if l.HasTime() {
		id.Epoch = c.Epoch
	}
	return id
}

// Identity returns the identity that a host of a map must have, and false for a host that belongs to no map.
func (h Host) Identity() (Identity, bool) {
	if h.identity == nil {
		return Identity{}, false
	}
	return *h.identity, true
}
