package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Config is the migrations to run, the shards to run them in, and how.
type Config struct {
	Map    *shards.Map
	Files  fs.FS      // the directory of migrations, as tern reads it
	Shards shards.Set // Defaults to all shards of the map

	To   int32 // the target version. Defaults to the newest file's; with Down to 0
	Down bool  // run the down parts. Defaults to up

	PerHost     int           // shards of one host at a time. Defaults to 4
	Grace       time.Duration // how long shards under way may go on after an interrupt. Defaults to 30 s
	TernWait    time.Duration // how long to wait for a running tern program. Defaults to 10 s
	LockTimeout time.Duration // limit for a statement's wait for a lock, unless it builds or drops an index concurrently. Defaults to the server's setting

	StatementTimeout time.Duration // how long a file's statement may take. Defaults to the server's setting
	Retries          int           // retries of a shard after a lock was not free within LockTimeout, or a file collided with others. Defaults to 5; negative for none

	Canary      int                                                // number of shards that run first, from all hosts in turn; shards at the target already count. Defaults to none
	Check       func(ctx context.Context, canary shards.Set) error // called after the canary; an error ends the run. Defaults to none
	Wave        int                                                // hosts at a time. Defaults to all
	MaxFailures int                                                // no further shard starts after more failures than this. Defaults to no limit

	TemplateEnv bool // templates may call env, expandenv and getHostByName

	SnapshotFrom int  // with at least this many files, new shards are made from a snapshot of the first ones. Defaults to 10
	Replay       bool // new shards always run all files

	By     string      // name for the ledger. Defaults to user@machine
	Events func(Event) // called with one event at a time. Defaults to none

	Progress fanout.Progress // of the shards with pending files. Defaults to none
	Logger   *slog.Logger    // also gets the server's notices. Defaults to none
}

const (
	defaultPerHost  = 4
	defaultRetries  = 5
	defaultSnapshot = 10
	defaultTernWait = 10 * time.Second
)

// withDefaults returns the config with defaults for its empty fields, or an error for an invalid field.
func (c Config) withDefaults() (Config, error) {
	if c.Map == nil {
		return c, errors.New("migrate: Config.Map is nil: expected the map of the cluster")
	}
	if c.Files == nil {
		return c, errors.New("migrate: Config.Files is nil: expected the directory of migrations")
	}
	if c.Shards.Len() == 0 {
		c.Shards = c.Map.All()
	}
	for _, r := range c.Shards.Ranges() {
		for _, n := range []shards.Number{r.First, r.Last} {
			if !c.Map.Has(n) {
				return c, fmt.Errorf("shard %d, the map has shards 0 to %d: %w", n, c.Map.Len()-1, shards.ErrNoShard)
			}
		}
	}
	if c.By == "" {
		c.By = ledger.Me()
	}
	switch {
	case c.Retries == 0:
		c.Retries = defaultRetries
	case c.Retries < 0:
		c.Retries = 0
	}
	if c.SnapshotFrom <= 0 {
		c.SnapshotFrom = defaultSnapshot
	}
	if c.PerHost <= 0 {
		c.PerHost = defaultPerHost
	}
	if c.TernWait <= 0 {
		c.TernWait = defaultTernWait
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
