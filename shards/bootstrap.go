package shards

import (
	"cmp"
	"slices"
	"strings"
)

// Remote reports whether the config holds no map, only how to find it: Cluster, Store, and the fields about this machine,
// Migrations and PasswordCommand. A kiloshard.yaml whose Store is not a file has no other fields. [Config.Map] refuses such a
// config; package mapstore loads its map.
func (c Config) Remote() bool {
	return c.Store.isRemote() && c.Shards == 0 && len(c.Hosts) == 0 && len(c.Placement) == 0
}

// Shared returns the part of the config that a store keeps for all users of the map: everything but Store, Migrations,
// PasswordCommand and the file's directory.
func (c Config) Shared() Config {
	c.Store, c.Migrations, c.PasswordCommand, c.dir = Store{}, "", nil, ""
	return c
}

// WithLocal returns the config with the fields that [Config.Shared] leaves out, taken from local: the kiloshard.yaml that
// named the store from which c was loaded. Relative file names in DSNs are then relative to that file's directory.
func (c Config) WithLocal(local Config) Config {
	c.Store, c.Migrations, c.PasswordCommand, c.dir = local.Store, local.Migrations, local.PasswordCommand, local.dir
	c.Hosts = slices.Clone(c.Hosts)
	var store *Store
	if local.Store.isRemote() {
		store = &local.Store
	}
	for i := range c.Hosts {
		c.Hosts[i].dir, c.Hosts[i].store = local.dir, store
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
			Expected: strings.Join(bootstrapFields, ", ") + " alone; kiloshard map edit changes the map, kiloshard map import copies one to the store",
		}
	}
	c = Config{Cluster: c.Cluster, Store: c.Store.withDefaults(), Migrations: c.Migrations, PasswordCommand: c.PasswordCommand}
	if err := c.checkBootstrap(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (c Config) checkBootstrap() error { return c.all(checkCluster, checkStore, checkText) }
