package shards

import (
	"path/filepath"
	"time"
)

// Config is what kiloshard.yaml holds. [Load] and [Parse] read one, [Config.YAML] writes one.
// [Config.Map] checks it and makes the [Map] of it.
//
// Its fields hold what is written: a DSN with its ${NAME} variables, a directory that may be
// relative. [Host.ConnString] and [Config.MigrationsDir] return what is meant.
type Config struct {
	Cluster      string      `json:"cluster"`        // a name; keeps two clusters from sharing a database by mistake
	Shards       int         `json:"shards"`         // how many exist now
	SchemaPrefix string      `json:"schema_prefix"`  // defaults to "shard_"
	Epoch        time.Time   `json:"epoch,omitzero"` // whole milliseconds; never changes once shards exist; may be left out without a time
	Layout       Layout      `json:"layout"`         // defaults to DefaultLayout
	Strategy     Strategy    `json:"strategy"`       // defaults to modulo
	Store        Store       `json:"store"`          // defaults to file
	Hosts        []Host      `json:"hosts"`          // at least one
	Placement    []Placement `json:"placement"`      // every shard exactly once
	Migrations   string      `json:"migrations"`     // a directory as written; see MigrationsDir
	SearchPath   []string    `json:"search_path"`    // extra schemas behind the shard's own
	Generators   []Generator `json:"generators"`     // other ways to make IDs, beside next_id()

	dir string // where Load found the file; empty without one
}

// MigrationsDir returns the directory of the migrations. A relative one is beside the file that the
// config was loaded from; without such a file it stays relative. It is empty when none is given.
func (c Config) MigrationsDir() string {
	if c.Migrations == "" || c.dir == "" || filepath.IsAbs(c.Migrations) {
		return c.Migrations
	}
	return filepath.Join(c.dir, c.Migrations)
}

// Store says where the map is kept.
type Store struct {
	Kind string `json:"kind"` // "file": in kiloshard.yaml itself
}

// Placement puts a set of shards on a host.
type Placement struct {
	Shards Set    `json:"shards"`
	Host   string `json:"host"`
}

// withDefaults returns the config with its empty fields filled in. It shares no slice with c, and
// has nil for an empty one.
func (c Config) withDefaults() Config {
	if c.SchemaPrefix == "" {
		c.SchemaPrefix = "shard_"
	}
	if c.Layout == (Layout{}) {
		c.Layout = DefaultLayout
	}
	c.Strategy = c.Strategy.withDefaults()
	if c.Store.Kind == "" {
		c.Store.Kind = "file"
	}
	c.Epoch = c.Epoch.UTC()
	c.Hosts = append([]Host(nil), c.Hosts...)
	for i := range c.Hosts {
		h := &c.Hosts[i]
		h.Replicas = append([]string(nil), h.Replicas...)
		if h.Weight == 0 {
			h.Weight = 1
		}
	}
	c.Placement = append([]Placement(nil), c.Placement...)
	c.SearchPath = append([]string(nil), c.SearchPath...)
	c.Generators = append([]Generator(nil), c.Generators...)
	for i := range c.Generators {
		c.Generators[i] = c.Generators[i].withDefaults(c.Layout)
	}
	return c
}
