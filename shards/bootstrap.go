package shards

import (
	"cmp"
	"slices"
	"strings"
)

// Remote reports whether the config holds no map, only how to find it: Cluster, Store, and what is on this machine, which
// are Migrations and PasswordCommand. That is all of kiloshard.yaml where Store is not a file. [Config.Map] refuses such a
// config; package mapstore loads the map of it.
func (c Config) Remote() bool {
	return c.Store.isRemote() && c.Shards == 0 && len(c.Hosts) == 0 && len(c.Placement) == 0
}

// Shared returns what a store keeps of the config, for all who use the map: all but Store, Migrations,
// PasswordCommand and the place of the file.
func (c Config) Shared() Config {
	c.Store, c.Migrations, c.PasswordCommand, c.dir = Store{}, "", nil, ""
	return c
}

// WithLocal returns the config with what [Config.Shared] leaves out, taken from another one: a map that came from a
// store, with the kiloshard.yaml that led there. Files that a DSN names are beside that one, too.
func (c Config) WithLocal(local Config) Config {
	c.Store, c.Migrations, c.PasswordCommand, c.dir = local.Store, local.Migrations, local.PasswordCommand, local.dir
	c.Hosts = slices.Clone(c.Hosts)
	for i := range c.Hosts {
		c.Hosts[i].dir, c.Hosts[i].local, c.Hosts[i].shared = local.dir, local.Store.Local, local.Store.isRemote()
	}
	return c
}

// store reads where the map is kept.
func (d *document) store(to *Store) read {
	return d.mapping(
		field{"kind", d.text(&to.Kind, expectedKind)},
		field{"dsn", d.secret(&to.DSN, &to.expanded, expectedStoreDSN)},
		field{"endpoints", list(d, &to.Endpoints, expectedEndpoints, func(endpoint *string) read {
			return d.text(endpoint, expectedEndpoint)
		})},
		field{"prefix", d.text(&to.Prefix, "what all keys begin with, such as /kiloshard/photos/")},
		field{"user", d.text(&to.User, "the name of a user")},
		field{"password", d.secret(&to.Password, &to.expanded, expectedPassword)},
		field{"ca", d.text(&to.CA, "a PEM file")},
		field{"cert", d.text(&to.Cert, "a PEM file")},
		field{"key", d.text(&to.Key, "a PEM file")},
		field{"variables", list(d, &to.Variables, expectedVariables, func(name *string) read { return d.text(name, expectedVariables) })},
		field{"hosts", list(d, &to.Hosts, expectedTrusted, func(host *string) read { return d.text(host, expectedTrusted) })},
		field{"local", d.local(&to.Local)},
	)
}

// bootstrapFields are those of a config without a map.
var bootstrapFields = []string{"cluster", "store", "migrations", "password_command"}

// bootstrap checks a config whose map is in a store, and fills in its defaults.
func (d *document) bootstrap(c Config) (Config, error) {
	if err := checkStoreKind(c.Store); err != nil {
		return Config{}, err
	}
	var others []string // of the map
	for name, line := range d.lines {
		if line > 0 && name != "" && !strings.ContainsAny(name, ".[") && !slices.Contains(bootstrapFields, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		first := slices.MinFunc(others, func(a, b string) int {
			return cmp.Or(cmp.Compare(d.lines[a], d.lines[b]), cmp.Compare(a, b))
		})
		return Config{}, &FieldError{
			Field: first, Found: "a part of the map, which is in the store (" + c.Store.Kind + ")",
			Expected: strings.Join(bootstrapFields, ", ") + " alone; kiloshard map edit changes the map, kiloshard map import brings one there",
		}
	}
	c = Config{Cluster: c.Cluster, Store: c.Store.withDefaults(), Migrations: c.Migrations, PasswordCommand: c.PasswordCommand}
	if err := c.checkBootstrap(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (c Config) checkBootstrap() error { return c.all(checkCluster, checkStore, checkText) }
