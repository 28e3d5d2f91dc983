package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

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

// DefaultConfig is the config file, in the present directory, if -c says nothing else.
const DefaultConfig = "kiloshard.yaml"
