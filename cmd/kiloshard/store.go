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

// openMap reads the config file, and the map from the store that it names. The caller closes the store.
func (a *app) openMap(ctx context.Context) (shards.Config, mapstore.Store, mapstore.Entry, error) {
	file, err := a.local()
	if err != nil {
		return file, nil, mapstore.Entry{}, err
	}
	store, err := a.openStore(ctx, file, mapstore.Options{})
	if err != nil {
		return file, nil, mapstore.Entry{}, err
	}
	entry, err := store.Load(ctx)
	if err != nil {
		return file, nil, entry, a.noMap(file, errors.Join(err, store.Close()))
	}
	entry.Map = entry.Map.WithCredentials(passwordCommand(file))
	return file, store, entry, nil
}

// loadEntry is openMap for those who need the store no more.
func (a *app) loadEntry(ctx context.Context) (shards.Config, mapstore.Entry, error) {
	file, store, entry, err := a.openMap(ctx)
	if err != nil {
		return file, entry, err
	}
	if err := store.Close(); err != nil {
		return file, entry, a.noMap(file, err)
	}
	return entry.Map.Config(), entry, nil
}

// loadMap reads the map from the store that the config file names, and its config, which has the directory of the
// migrations and the store from the file.
func (a *app) loadMap(ctx context.Context) (shards.Config, *shards.Map, error) {
	cfg, entry, err := a.loadEntry(ctx)
	return cfg, entry.Map, err
}

// noMap tells what to do about a store that holds none, or does not answer.
func (a *app) noMap(cfg shards.Config, err error) error {
	if errors.Is(err, mapstore.ErrNoMap) {
		return usagef("%s holds no map of cluster %s: expected one, see kiloshard map import", a.where(cfg.Store), cfg.Cluster)
	}
	if errors.Is(err, mapstore.ErrNoAnswer) {
		return fmt.Errorf("%w; --store-timeout is %s", err, a.storeLimit)
	}
	return err
}

// passwordCommand returns what asks the password command of the config file, nil if there is none: for the connections to
// the control database, and those that are made by the map. It must be the file's own: a person who can write the command can
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

// where says where a map is kept.
func (a *app) where(store shards.Store) string {
	if store.Kind == shards.StoreFile || store.Kind == "" {
		return "file " + a.configFile
	}
	return store.String()
}
