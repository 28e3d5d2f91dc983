package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Config says which migrations are meant, and over which shards.
type Config struct {
	Map    *shards.Map
	Files  fs.FS      // the directory of migrations, as tern reads it
	Shards shards.Set // Defaults to all shards of the map

	To   int32 // the version to go to. Defaults to the newest file's; on the way down to 0
	Down bool  // the way is down. Defaults to up

	PerHost     int           // how many shards of one host at a time. Defaults to 4
	Grace       time.Duration // how long shards under way may go on after an interrupt. Defaults to 30 s
	TernWait    time.Duration // how long to wait for a tern program that is at work. Defaults to 10 s
	LockTimeout time.Duration // how long a file's statement may wait for a lock on a table, unless it builds or drops an index concurrently. Defaults to the server's setting

	StatementTimeout time.Duration // how long a file's statement may take. Defaults to the server's setting
	Retries          int           // how often a shard is tried again when a lock is not free within LockTimeout. Defaults to 5; negative for never

	Canary      int                                                // how many shards go first, from all hosts in turn. Defaults to none
	Check       func(ctx context.Context, canary shards.Set) error // asked before the others follow. Defaults to nothing
	Wave        int                                                // how many hosts at a time. Defaults to all
	MaxFailures int                                                // after how many failed shards no other is begun. Defaults to no limit

	TemplateEnv bool // files that are templates may call env, expandenv and getHostByName

	SnapshotFrom int  // from how many files on new shards are made from a snapshot of a migrated one. Defaults to 10
	Replay       bool // new shards run all files, however many there are

	By     string      // who runs it, for the ledger. Defaults to user@machine
	Events func(Event) // called with what happens, one event at a time. Defaults to none

	Progress fanout.Progress // of the shards that have something to do. Defaults to none
	Logger   *slog.Logger    // gets the server's notices while it runs a file. Defaults to none
}

const (
	defaultPerHost  = 4
	defaultRetries  = 5
	defaultSnapshot = 10
	defaultTernWait = 10 * time.Second
)

// withDefaults returns the config with its empty fields filled in, or what is wrong with it.
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
		c.By = me()
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
