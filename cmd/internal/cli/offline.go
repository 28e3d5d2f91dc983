package cli

import (
	"context"
	"errors"
	"io/fs"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

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
