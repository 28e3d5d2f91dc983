package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
)

// DefaultConfig is the config file, in the present directory, if -c says nothing else.
const DefaultConfig = "kiloshard.yaml"

// configVariable names the config file where no -c does.
const configVariable = "KILOSHARD_CONFIG"

// findConfig returns the config file of a command line without -c: the one that the environment names, else the one in
// this directory or in the nearest above that has one. A command that may write a new one writes it here.
func (a *App) findConfig(cmd *cobra.Command) string {
	a.found = false
	if file, ok := a.Lookup(configVariable); ok && file != "" {
		return file
	}
	dir, err := os.Getwd()
	if err != nil || cmd.Name() == "init" {
		return DefaultConfig
	}
	for path := "."; ; path = filepath.Join("..", path) {
		if _, err := os.Stat(filepath.Join(path, DefaultConfig)); err == nil {
			a.found = true
			return filepath.Join(path, DefaultConfig)
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return DefaultConfig
	}
}

// Local reads the config file. With another store for the map, the rest of the config is not in it: see [shards.Config.Remote].
func (a *App) Local() (shards.Config, error) {
	cfg, err := a.LoadFile(a.Lookup)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, Usagef("no config file %s: expected one, see kiloshard init, or -c FILE", a.ConfigFile)
	}
	return cfg, err
}

// LoadFile reads the config file with the variables that lookup has. A pipe is refused: reading it could wait for good.
func (a *App) LoadFile(lookup func(name string) (string, bool)) (shards.Config, error) {
	info, err := os.Stat(a.ConfigFile)
	if err != nil {
		return shards.Load(a.ConfigFile, lookup) // it says what is wrong
	}
	if !info.Mode().IsRegular() {
		return shards.Config{}, Usagef("config %s: expected a regular file, since it is read more than once", a.ConfigFile)
	}
	if others := othersOf(info, a.Lookup); a.found && others != "" {
		return shards.Config{}, Usagef("config %s %s, and a config names programs to run: expected one that is yours or root's alone; -c %[1]s uses it all the same", a.ConfigFile, others)
	}
	return shards.Load(a.ConfigFile, lookup)
}

// Unset looks up variables, and leaves those that are not set as they are written: for commands that connect to no host, and
// so need no password.
func (a *App) Unset(name string) (string, bool) {
	if value, ok := a.Lookup(name); ok {
		return value, true
	}
	return "${" + name + "}", true
}

// LocalOffline is [App.Local] for a command that connects to no host. What the config says of its store is needed all the same.
func (a *App) LocalOffline() (shards.Config, error) {
	cfg, err := a.LoadFile(a.Unset)
	if errors.Is(err, fs.ErrNotExist) || err == nil && cfg.Remote() {
		return a.Local()
	}
	return cfg, err
}

// Where says where a map is kept.
func (a *App) Where(store shards.Store) string {
	if store.Kind == shards.StoreFile || store.Kind == "" {
		return "file " + a.ConfigFile
	}
	return store.String()
}
