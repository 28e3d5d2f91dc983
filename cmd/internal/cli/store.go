package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// OpenStore opens the store that a config names.
func (a *App) OpenStore(ctx context.Context, cfg shards.Config, opts mapstore.Options) (mapstore.Store, error) {
	if cfg.Store.Kind == shards.StorePostgres {
		if _, err := connect.Check(cfg.Store.Host()); err != nil {
			return nil, a.badDSN(cfg, "store.dsn", err)
		}
	}
	opts.Path, opts.Lookup, opts.Credentials, opts.Limit = a.ConfigFile, a.Lookup, PasswordCommand(cfg), a.storeLimit
	return mapstore.Open(ctx, cfg, opts)
}

// OpenMap reads the config file, and the map from the store that it names. The caller closes the store.
func (a *App) OpenMap(ctx context.Context) (shards.Config, mapstore.Store, mapstore.Entry, error) {
	file, err := a.Local()
	if err != nil {
		return file, nil, mapstore.Entry{}, err
	}
	store, err := a.OpenStore(ctx, file, mapstore.Options{})
	if err != nil {
		return file, nil, mapstore.Entry{}, err
	}
	entry, err := store.Load(ctx)
	if err != nil {
		return file, nil, entry, a.NoMap(file, errors.Join(err, store.Close()))
	}
	if err := a.checkDSNs(file, entry.Map); err != nil {
		return file, nil, entry, errors.Join(err, store.Close())
	}
	entry.Map = entry.Map.WithCredentials(PasswordCommand(file))
	return file, store, entry, nil
}

// LoadEntry is OpenMap without the store, which it closes.
func (a *App) LoadEntry(ctx context.Context) (shards.Config, mapstore.Entry, error) {
	file, store, entry, err := a.OpenMap(ctx)
	if err != nil {
		return file, entry, err
	}
	if err := store.Close(); err != nil {
		return file, entry, a.NoMap(file, err)
	}
	return entry.Map.Config(), entry, nil
}

// LoadMap reads the map from the store that the config file names, and its config, which has the directory of the
// migrations and the store from the file.
func (a *App) LoadMap(ctx context.Context) (shards.Config, *shards.Map, error) {
	cfg, entry, err := a.LoadEntry(ctx)
	return cfg, entry.Map, err
}

// LoadMapOffline is [App.LoadMap] for a command that connects to no host.
func (a *App) LoadMapOffline(ctx context.Context) (shards.Config, *shards.Map, error) {
	file, err := a.LocalOffline()
	if err != nil {
		return file, nil, err
	}
	return a.mapOffline(ctx, file)
}

// mapOffline loads the map from the store that a config names.
func (a *App) mapOffline(ctx context.Context, file shards.Config) (shards.Config, *shards.Map, error) {
	store, err := a.OpenStore(ctx, file, mapstore.Options{KeepUnset: true})
	if err != nil {
		return file, nil, err
	}
	entry, err := store.Load(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return file, nil, a.NoMap(file, err)
	}
	return entry.Map.Config(), entry.Map, nil
}

// NoMap says what to do about a store that holds no map or does not answer.
func (a *App) NoMap(cfg shards.Config, err error) error {
	if errors.Is(err, mapstore.ErrNoMap) {
		return Usagef("%s holds no map of cluster %s: expected one, see kiloshard map import", a.Where(cfg.Store), cfg.Cluster)
	}
	if errors.Is(err, mapstore.ErrNoAnswer) {
		return fmt.Errorf("%w; --store-timeout is %s", err, a.storeLimit)
	}
	return err
}

// PasswordCommand returns what asks the password command of the config file, nil if there is none: for the connections to
// the control database, and those that are made by the map. It must be the file's own: a person who can write the command can
// run programs here.
func PasswordCommand(file shards.Config) shards.CredentialsFunc {
	if len(file.PasswordCommand) == 0 {
		return nil
	}
	return connect.Command{Words: file.PasswordCommand, Dir: file.Dir()}.Credentials
}

// StoreVariable says how long a store may take to answer where no --store-timeout does.
const StoreVariable = "KILOSHARD_STORE_TIMEOUT"

// storeTimeout reads it.
func (a *App) storeTimeout(cmd *cobra.Command) error {
	if text, ok := a.Lookup(StoreVariable); ok && text != "" && !cmd.Flags().Changed("store-timeout") {
		limit, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s %q: expected a duration such as 2s", StoreVariable, text)
		}
		a.storeLimit = limit
	}
	if a.storeLimit <= 0 {
		return fmt.Errorf("--store-timeout %s: expected more than 0", a.storeLimit)
	}
	return nil
}
