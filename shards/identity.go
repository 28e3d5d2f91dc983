package shards

import "time"

// Identity is what a host's kiloshard.settings say of the cluster that its shards belong to, and what a map expects there.
type Identity struct {
	Cluster      string
	SchemaPrefix string
	Epoch        time.Time // the zero time for a layout without a time
	Layout       Layout    // in usable bits: the time without the bit of the sign
}

// identity returns what the hosts of the config's cluster say.
func (c Config) identity() *Identity {
	l := c.Layout
	id := &Identity{Cluster: c.Cluster, SchemaPrefix: c.SchemaPrefix, Layout: Layout{Time: l.TimeBits(), Shard: l.Shard, Type: l.Type, Sequence: l.Sequence}}
	if l.HasTime() {
		id.Epoch = c.Epoch
	}
	return id
}

// Identity returns what a host of a map is expected to say, and false for one that is of no map.
func (h Host) Identity() (Identity, bool) {
	if h.identity == nil {
		return Identity{}, false
	}
	return *h.identity, true
}

// OfAnyCluster returns the host without the check of its identity, for a program that does that check itself.
func (h Host) OfAnyCluster() Host {
	h.identity = nil
	return h
}
