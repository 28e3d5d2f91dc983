package router

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/shards"
)

// The values of [Path].How: where the shard of a key comes from.
const (
	ByArithmetic = "arithmetic"
	ByCache      = "cache"     // of the directory's entries
	ByLookup     = "lookup"    // in the directory
	ByOtherwise  = "otherwise" // by the other strategy: a lookup found no entry
)

// Path says how a router finds the shard of a key. It holds no DSN.
type Path struct {
	Key        string        `json:"key"` // a number as its decimal text
	Strategy   string        `json:"strategy"`
	How        string        `json:"how"`             // ByArithmetic, ByCache, ByLookup or ByOtherwise
	Arithmetic string        `json:"arithmetic"`      // the calculation; empty if the shard is in the entry
	Entry      string        `json:"entry,omitempty"` // with a directory: the schema that holds the key's entry
	Shard      shards.Number `json:"shard"`
	Schema     string        `json:"schema"`
	Host       string        `json:"host"` // the host's name

	// Note warns if the key looks like an ID that was passed as a key by mistake; see [shards.Map.NoteID].
	Note string `json:"note,omitempty"`
}

// Explain finds the shard of a key as [Router.ForKey] does, with the same errors, and returns how it found it.
func (r *Router) Explain(ctx context.Context, key shards.Key) (Path, error) {
	now := r.now.Load()
	p := Path{Key: key.String(), Strategy: now.shards.Strategy().By}
	var n shards.Number
	var err error
	if !now.shards.HasDirectory() {
		n, err = now.shards.For(key)
		p.How, p.Arithmetic = ByArithmetic, now.shards.Explain(key)
	} else {
		n, err = r.explain(ctx, key, &p)
	}
	if err != nil {
		return Path{}, err
	}
	s, err := r.ForShard(n)
	if err != nil {
		return Path{}, err
	}
	p.Note = now.shards.NoteID(key, time.Now())
	p.Shard, p.Schema, p.Host = n, s.Schema(), s.Host().Name
	return p, nil
}

func (r *Router) explain(ctx context.Context, key shards.Key, p *Path) (shards.Number, error) {
	n, how, err := r.directory.Lookup(ctx, key)
	if err != nil {
		return 0, err
	}
	m := r.Map()
	p.Entry = m.Schema(m.EntryShard(key))
	switch how {
	case directory.Cached:
		p.How = ByCache
	case directory.Found:
		p.How = ByLookup
	case directory.Otherwise:
		p.How, p.Arithmetic = ByOtherwise, m.ExplainOtherwise(key)
	}
	return n, nil
}

// String returns the path as one line, such as
//
//	key 31341: modulo: 31341 mod 2048 = 621: shard 621 (shard_00621 on pg-a)
func (p Path) String() string {
	way := p.Arithmetic
	switch p.How {
	case ByCache:
		way = "entry of " + p.Entry + ", cached"
	case ByLookup:
		way = "entry of " + p.Entry + ", looked up"
	case ByOtherwise:
		way = "no entry in " + p.Entry + ", looked up; otherwise " + p.Arithmetic
	}
	return fmt.Sprintf("key %s: %s: %s: shard %d (%s on %s)", p.Key, p.Strategy, way, p.Shard, p.Schema, p.Host)
}
