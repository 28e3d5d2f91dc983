package shards

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
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
	Version       int         `json:"version,omitempty" yaml:"version,omitempty"`       // rises with each change; 0 if the map was never in a store
	Shards        int         `json:"shards" yaml:"shards"`                             // how many exist now
	SchemaPrefix  string      `json:"schema_prefix" yaml:"schema_prefix"`               // defaults to "shard_"
	Epoch         time.Time   `json:"epoch,omitzero" yaml:"epoch,omitempty"`            // whole milliseconds; never changes; optional if IDs have no time
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

	// OldIDsBelow is the smallest ID that shards of an adopted database can make: smaller ones are from the sequences of its old tables, and
	// say nothing of a shard, so [Map.ForID] refuses them. It never changes once it is set. Defaults to 0: there are none.
	OldIDsBelow ID `json:"old_ids_below,omitempty" yaml:"old_ids_below,omitempty"`

	// Types are the kinds of objects of package router/objects.
	Types []ObjectType `json:"types,omitempty" yaml:"types,omitempty"`

	// PasswordCommand is a program with its arguments that prints the password for a connection that the command
	// kiloshard is about to make. Only the file that the command reads may set it, since anyone who can write it can
	// run programs.
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

// Evenly places shards 0 to count-1 on the hosts in rising order: one range for each host, as equal
// as possible. If there are fewer shards than hosts, the last hosts have no placement.
func Evenly(count int, hosts []Host) []Placement {
	var placement []Placement
	for i, h := range hosts {
		first, next := count*i/len(hosts), count*(i+1)/len(hosts)
		if first < next {
			placement = append(placement, Placement{SetOfRanges(Range{Number(first), Number(next - 1)}), h.Name})
		}
	}
	return placement
}

// Extension is an extension of Postgres that each host has, outside the shards' schemas, such as citext.
type Extension struct {
	Name    string `json:"name" yaml:"name,short"`
	Schema  string `json:"schema" yaml:"schema"`             // defaults to public
	Version string `json:"version,omitempty" yaml:"version"` // defaults to what a host has, and for a new one to the newest there
}

// ObjectType is a kind of object, such as a pin or a board, and its number in the IDs of package router/objects.
type ObjectType struct {
	Name   string `json:"name" yaml:"name"`
	Number int    `json:"number" yaml:"number,zero"` // in the type field of an ID; never changes once there are objects
}

// maxObjectTypes is how many types the IDs of package router/objects can hold, in any layout of the map.
const maxObjectTypes = 1 << 10

// Remote reports whether the config holds no map, only how to find it: Cluster, Store, and the fields about this
// machine, Migrations and PasswordCommand. A kiloshard.yaml whose Store is not a file has no other fields.
// [Config.Map] refuses such a config; package mapstore loads its map.
func (c Config) Remote() bool {
	return c.Store.isRemote() && c.Shards == 0 && len(c.Hosts) == 0 && len(c.Placement) == 0
}

// Shared returns the part of the config that a store keeps for all users of the map: everything but Store, Migrations,
// PasswordCommand and the file's directory.
func (c Config) Shared() Config {
	c.Store, c.Migrations, c.PasswordCommand, c.dir = Store{}, "", nil, ""
	return c
}

// WithLocal returns the config with the fields that [Config.Shared] leaves out, taken from local: the kiloshard.yaml
// that named the store from which c was loaded. Relative file names in DSNs are then relative to that file's
// directory.
func (c Config) WithLocal(local Config) Config {
	c.Store, c.Migrations, c.PasswordCommand, c.dir = local.Store, local.Migrations, local.PasswordCommand, local.dir
	var store *Store
	if local.Store.isRemote() {
		store = &local.Store
	}
	c.Hosts = slices.Clone(c.Hosts)
	for i := range c.Hosts {
		c.Hosts[i].dir, c.Hosts[i].store = local.dir, store
	}
	return c
}

func (c Config) hostNames() []string {
	names := make([]string, len(c.Hosts))
	for i, h := range c.Hosts {
		names[i] = h.Name
	}
	return names
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

// Format prints the config without secrets, for every verb: without the DSNs of hosts and store, and without the
// arguments of PasswordCommand. As with a [Host], package fmt prints a config in an unexported field of another struct
// field by field.
func (c Config) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), c.shown())
}

// LogValue keeps a logger from printing secrets.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c.shown())) }

// shownConfig is a config without methods.
type shownConfig Config

func (c Config) shown() shownConfig {
	if len(c.PasswordCommand) > 1 {
		c.PasswordCommand = []string{c.PasswordCommand[0], "…"}
	}
	return shownConfig(c)
}
