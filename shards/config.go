package shards

import (
	"cmp"
	"path/filepath"
	"time"
)

// Config is the content of kiloshard.yaml. [Load] and [Parse] read one, [Config.YAML] writes one.
// [Config.Map] checks it and returns its [Map]. If the map is kept in a store, kiloshard.yaml only says how to find
// it: see [Config.Remote].
//
// The fields hold the text as written: a DSN with its ${NAME} variables, a directory that may be
// relative. [Host.ConnString] and [Config.MigrationsDir] return the resolved values.
type Config struct {
	Cluster       string      `json:"cluster" yaml:"cluster"`                           // a name; keeps two clusters from sharing a database by mistake
	Version       int         `json:"version,omitempty" yaml:"version,omitempty"`       // of the map, rising with each change; 0 for one that was never in a store
	Shards        int         `json:"shards" yaml:"shards"`                             // how many exist now
	SchemaPrefix  string      `json:"schema_prefix" yaml:"schema_prefix"`               // defaults to "shard_"
	Epoch         time.Time   `json:"epoch,omitzero" yaml:"epoch,omitempty"`            // whole milliseconds; never changes once shards exist; may be left out without a time
	Layout        Layout      `json:"layout" yaml:"layout"`                             // defaults to DefaultLayout
	Strategy      Strategy    `json:"strategy" yaml:"strategy"`                         // defaults to modulo
	Store         Store       `json:"store" yaml:"store,omitempty"`                     // defaults to file
	Hosts         []Host      `json:"hosts" yaml:"hosts"`                               // at least one
	Placement     []Placement `json:"placement" yaml:"placement"`                       // every shard exactly once
	Migrations    string      `json:"migrations" yaml:"migrations,omitempty"`           // a directory as written; see MigrationsDir
	SearchPath    []string    `json:"search_path" yaml:"search_path"`                   // extra schemas behind the shard's own
	SharedSchemas []string    `json:"shared,omitempty" yaml:"shared,omitempty"`         // schemas that migrations marked "once a host" may change
	Extensions    []Extension `json:"extensions,omitempty" yaml:"extensions,omitempty"` // of Postgres, on each host; their schemas follow SearchPath
	Generators    []Generator `json:"generators" yaml:"generators,omitempty"`           // other ways to make IDs, beside next_id()

	// Types are the kinds of objects of package router/objects.
	Types []ObjectType `json:"types,omitempty" yaml:"types,omitempty"`

	// PasswordCommand is a program with its arguments that prints the password for a connection that the command
	// kiloshard is about to make. Only the file that the command reads may set it, since anyone who can write it can run
	// programs.
	PasswordCommand []string `json:"-" yaml:"password_command,omitempty"`

	dir string // where Load found the file; empty without one
}

// Dir returns the directory of the file that the config was loaded from. It is empty without one.
func (c Config) Dir() string { return c.dir }

// MigrationsDir returns the [Config.Path] of the migrations' directory, empty if the config names none.
func (c Config) MigrationsDir() string { return c.Path(c.Migrations) }

// Path returns the path of a file that the config names. A relative name is resolved in the directory of the file that
// the config was loaded from; without such a file it stays relative. An empty name stays empty.
func (c Config) Path(name string) string {
	if name == "" || c.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.dir, name)
}

// Placement puts a set of shards on a host.
type Placement struct {
	Shards Set    `json:"shards" yaml:"shards"`
	Host   string `json:"host" yaml:"host"`
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
	c.Store = c.Store.withDefaults()
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
	c.SharedSchemas = append([]string(nil), c.SharedSchemas...)
	c.Extensions = append([]Extension(nil), c.Extensions...)
	for i := range c.Extensions {
		c.Extensions[i].Schema = cmp.Or(c.Extensions[i].Schema, "public")
	}
	c.PasswordCommand = append([]string(nil), c.PasswordCommand...)
	c.Types = append([]ObjectType(nil), c.Types...)
	c.Generators = append([]Generator(nil), c.Generators...)
	for i := range c.Generators {
		c.Generators[i] = c.Generators[i].withDefaults(c.Layout)
	}
	return c
}
