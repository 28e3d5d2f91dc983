package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// local reads the config file. Where the map is kept elsewhere, that is all there is in it: see [shards.Config.Remote].
func (a *app) local() (shards.Config, error) {
	cfg, err := shards.Load(a.configFile, a.lookup)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, usagef("no config file %s: expected one, see kiloshard init, or -c FILE", a.configFile)
	}
	return cfg, err
}

// openStore opens the store that a config names.
func (a *app) openStore(ctx context.Context, cfg shards.Config, opts mapstore.Options) (mapstore.Store, error) {
	opts.Path, opts.Lookup, opts.Credentials, opts.Limit = a.configFile, a.lookup, passwordCommand(cfg), a.storeLimit
	return mapstore.Open(ctx, cfg, opts)
}

// loadEntry reads the config file, and the map from the store that it names.
func (a *app) loadEntry(ctx context.Context) (shards.Config, mapstore.Entry, error) {
	cfg, err := a.local()
	if err != nil {
		return cfg, mapstore.Entry{}, err
	}
	store, err := a.openStore(ctx, cfg, mapstore.Options{})
	if err != nil {
		return cfg, mapstore.Entry{}, err
	}
	entry, err := store.Load(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return cfg, entry, a.noMap(cfg, err)
	}
	entry.Map = entry.Map.WithCredentials(passwordCommand(cfg))
	return entry.Map.Config(), entry, nil
}

// loadMap reads the map from the store that the config file names, and its config, which has the directory of the
// migrations and the store from the file.
func (a *app) loadMap(ctx context.Context) (shards.Config, *shards.Map, error) {
	cfg, entry, err := a.loadEntry(ctx)
	return cfg, entry.Map, err
}

// noMap tells what to do about a store that holds none.
func (a *app) noMap(cfg shards.Config, err error) error {
	if errors.Is(err, mapstore.ErrNoMap) {
		return usagef("%s holds no map of cluster %s: expected one, see kiloshard map import", a.where(cfg.Store), cfg.Cluster)
	}
	return err
}

// passwordCommand returns what asks the password command of the config file, nil if there is none: for the connections to
// the control database, and those that are made by the map. It must be the file's own: whoever can write the command can
// run programs here.
func passwordCommand(file shards.Config) shards.CredentialsFunc {
	if len(file.PasswordCommand) == 0 {
		return nil
	}
	return connect.Command{Words: file.PasswordCommand, Dir: file.Dir()}.Credentials
}

// storeVariable says how long a store may take to answer where no --store-timeout does.
const storeVariable = "KILOSHARD_STORE_TIMEOUT"

// storeTimeout reads it.
func (a *app) storeTimeout(cmd *cobra.Command) error {
	if text, ok := a.lookup(storeVariable); ok && text != "" && !cmd.Flags().Changed("store-timeout") {
		limit, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s %q: expected a duration such as 2s", storeVariable, text)
		}
		a.storeLimit = limit
	}
	if a.storeLimit <= 0 {
		return fmt.Errorf("--store-timeout %s: expected more than 0", a.storeLimit)
	}
	return nil
}
