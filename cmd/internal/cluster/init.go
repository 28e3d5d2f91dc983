package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
)

// initialized is the JSON output of kiloshard init.
type initialized struct {
	Written string `json:"written"`
	Map     string `json:"map,omitempty"` // the file of the map, where the store is another
}

// InitCommand is kiloshard init.
func InitCommand(a *cli.App) *cobra.Command {
	var (
		force bool
		store string
	)
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Writes a commented config",
		Long: `Writes a commented config, kiloshard.yaml or the file of -c. Edit the hosts and their DSNs first. The epoch is
today's midnight, UTC. An existing file stays, unless --force is given.

With --store postgres or etcd the config says only where the map is kept, and the first map is written beside
it, for kiloshard map import.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			epoch := time.Now().UTC().Truncate(24 * time.Hour)
			switch store {
			case shards.StoreFile:
				if err := writeNew(a.ConfigFile, shards.Template(shards.Config{Epoch: epoch}), force); err != nil {
					return err
				}
				return a.Print(initialized{Written: a.ConfigFile}, func() {
					a.Say("%s is written. Edit its hosts, then: %s create", a.ConfigFile, again(a))
				})
			case shards.StorePostgres, shards.StoreEtcd:
			default:
				return cli.Usagef("--store %q: expected file, postgres or etcd", store)
			}
			extension := filepath.Ext(a.ConfigFile)
			mapFile := strings.TrimSuffix(a.ConfigFile, extension) + "-map" + extension
			if _, err := os.Stat(a.ConfigFile); err == nil && !force {
				return exists(a.ConfigFile)
			}
			if err := writeNew(mapFile, shards.Template(shards.Config{Epoch: epoch}), force); err != nil {
				return err
			}
			if err := writeNew(a.ConfigFile, shards.Template(shards.Config{Store: shards.Store{Kind: store}}), force); err != nil {
				return err
			}
			return a.Print(initialized{Written: a.ConfigFile, Map: mapFile}, func() {
				a.Say("%s and %s are written. Edit the store in the one and the hosts in the other, then: %s map import %s; %s create",
					a.ConfigFile, mapFile, again(a), mapFile, again(a))
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite a file that is there already")
	cmd.Flags().StringVar(&store, "store", shards.StoreFile, "where the map is kept: file, postgres or etcd")
	return cmd
}

// again returns how the next command with this config begins.
func again(a *cli.App) string {
	if a.ConfigFile == cli.DefaultConfig {
		return "kiloshard"
	}
	return "kiloshard -c " + a.ConfigFile
}

// writeNew writes a config, which may come to hold passwords.
func writeNew(path string, text []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exists(path)
	}
	if err != nil {
		return fmt.Errorf("cannot write the config: %w", err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cannot write the config: %w", err)
	}
	return nil
}

func exists(path string) error {
	return cli.Usagef("%s exists: expected no such file, or --force to overwrite it", path)
}
