package shards

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
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

// bootstrapFields are those of a config without a map.
var bootstrapFields = []string{"cluster", "store", "migrations", "password_command"}

// bootstrap checks a config whose map is in a store, and fills in its defaults.
func (c Config) bootstrap(lines configfile.Lines) (Config, error) {
	if err := checkStoreKind(c.Store); err != nil {
		return Config{}, err
	}
	var others []string // of the map
	for name, line := range lines {
		if line > 0 && name != "" && !strings.ContainsAny(name, ".[") && !slices.Contains(bootstrapFields, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		first := slices.MinFunc(others, func(a, b string) int {
			return cmp.Or(cmp.Compare(lines[a], lines[b]), cmp.Compare(a, b))
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
