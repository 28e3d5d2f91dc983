package shards

import (
	"slices"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
	"github.com/kiloshard/kiloshard/shards/internal/configtext"
)

// YAML returns the config, its defaults filled in, as kiloshard.yaml. [Parse] reads it back as an equal config. DSNs
// are as written, with their ${NAME} variables. A map that is kept in a store other than a file is written as the
// store keeps it, without Store. The error is the [FieldError] of a config that [Config.Map] refuses.
func (c Config) YAML() ([]byte, error) {
	if c.Remote() {
		c.Store = c.Store.withDefaults()
		if err := c.checkRemote(); err != nil {
			return nil, err
		}
		return configfile.Write(c.remoteFields(), nil), nil
	}
	m, err := c.Map()
	if err != nil {
		return nil, err
	}
	return configfile.Write(m.config.fields(), nil), nil
}

// fields returns the fields of a config with its defaults filled in, as kiloshard.yaml or a store has them.
func (c Config) fields() []configfile.Field {
	if c.Store.isRemote() {
		c.Store = Store{}
	}
	return format.Fields(c)
}

// remoteFields returns the fields of a config without a map.
func (c Config) remoteFields() []configfile.Field {
	return slices.DeleteFunc(format.Fields(c), func(f configfile.Field) bool { return !slices.Contains(remoteFieldNames, f.Name) })
}

// Template returns a kiloshard.yaml with a comment for each field, for a new cluster. Fields that c leaves empty get
// example values: 2048 shards, and two hosts, pg-a and pg-b, with their passwords in the variables PG_A_PASSWORD and
// PG_B_PASSWORD. Without a placement the shards are spread evenly, in ranges. c must have an epoch, such as midnight
// UTC of the present day. Template does not check c: [Parse] does.
//
// For a [Config.Remote] config it returns the kiloshard.yaml that says how to find the map, with example values for
// fields that c leaves empty.
func Template(c Config) []byte {
	if c.Remote() {
		return remoteTemplate(c)
	}
	if c.Cluster == "" {
		c.Cluster = "photos"
	}
	if c.Shards == 0 {
		c.Shards = 2048
	}
	if len(c.Hosts) == 0 {
		c.Hosts = []Host{
			{Name: "pg-a", DSN: "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app?sslmode=verify-full"},
			{Name: "pg-b", DSN: "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app?sslmode=verify-full"},
		}
	}
	if c.Strategy.By == "" {
		c.Strategy = Strategy{By: Modulo, RefuseIDs: true}
	}
	if len(c.Placement) == 0 {
		c.Placement = Evenly(c.Shards, c.Hosts)
	}
	if c.Migrations == "" {
		c.Migrations = "./migrations"
	}
	c = c.withDefaults()
	return configtext.New(c.fields(), c.SchemaPrefix, c.Layout.MaxShards())
}

// remoteTemplate returns the template of a config whose map is in a store.
func remoteTemplate(c Config) []byte {
	if c.Cluster == "" {
		c.Cluster = "photos"
	}
	if c.Migrations == "" {
		c.Migrations = "./migrations"
	}
	switch c.Store = c.Store.withDefaults(); {
	case c.Store.Kind == StorePostgres && c.Store.DSN == "":
		c.Store.DSN = "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"
	case c.Store.Kind == StoreEtcd && len(c.Store.Endpoints) == 0:
		c.Store.Endpoints = []string{"https://10.0.0.9:2379"}
	}
	return configtext.NewRemote(c.remoteFields())
}
