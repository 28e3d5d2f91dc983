package verify

import (
	"errors"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
)

// compareShard compares one shard on all hosts.
func (c *comparison) compareShard(n shards.Number) {
	m := c.Wanted.Map
	schema, placement := m.Schema(n), m.HostIndex(n)
	host, list := c.Hosts[placement], &c.lists[placement]
	if found, stopped := host.Stopped[schema]; stopped {
		if found != "" {
			list.Add(difference.Fenced, schema, found, "a running mover; kiloshard move resume, or move abort")
		}
		return
	}
	_, placed := host.Shards[schema]
	elsewhere := false
	for i, other := range c.Hosts {
		if _, ok := other.Shards[schema]; !ok || i == placement {
			continue
		}
		elsewhere = true
		if placed { // the content of a copy does not matter
			c.lists[i].Add(difference.Twice, schema, "is here", "only on "+host.Name+"; "+difference.CopyAdvice(other.Name))
			continue
		}
		c.lists[i].Add(difference.Misplaced, schema, "is here", "on "+host.Name+"; correct the map's placement, or move the shard")
		c.compareParts(i, n)
	}
	switch {
	case placed:
		c.compareParts(placement, n)
	case !elsewhere && errors.Join(c.Unreached...) != nil:
		list.Add(difference.Missing, schema, "no such schema", "the shard, unless it is on a host that does not answer")
	case c.Lost.Has(n):
		list.Add(difference.Missing, schema, "no such schema, though the ledger says that it ran migrations",
			"the shard, restored; kiloshard create --empty creates it again, without rows")
	case !elsewhere:
		list.Add(difference.Missing, schema, "no such schema", "the shard; kiloshard create creates it")
	}
}

// compareParts compares the objects of a shard on one host.
func (c *comparison) compareParts(host int, n shards.Number) {
	w, h, l := c.Wanted, c.Hosts[host], &c.lists[host]
	schema := w.Map.Schema(n)
	if found := h.Shards[schema]; !found.Ours {
		l.Add(difference.Foreign, schema, "it has no objects of a shard; it belongs to role "+found.Owner, "the shard, or no such schema")
		return
	}
	w.Shard.Compare(l, h.Versions, h.Details.Functions[schema], h.Details.Sequences[schema], n)
	w.Generators.CompareShard(l, h.Generators, h.Versions, n)
	w.KeyTables.Compare(l, h.KeyTables, h.Versions, schema)
	h.Rights.Compare(l, c.grants, schema)
}
