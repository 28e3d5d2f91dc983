//go:build unix

package localpg

import (
	"context"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/binaries"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/cluster"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/rundir"
)

// startLocal starts a server from binaries, which are downloaded if the source is Download.
func startLocal(ctx context.Context, cfg Config, source Source) (_ engine.Engine, version string, err error) {
	dir := rundir.Config{Parent: cfg.Dir, Keep: cfg.Keep, Logger: cfg.Logger}
	dir.InMemory = strings.EqualFold(cfg.Settings["fsync"], "off") // the data need not be durable
	var bin binaries.Dir
	if source == Local {
		bin, err = binaries.Find(ctx, cfg.BinDir)
	} else if bin, err = binaries.Download(ctx, cfg.DownloadURL, cfg.CacheDir, dir); err != nil {
		err = fmt.Errorf("download: %w", err)
	}
	if err != nil {
		return nil, "", engine.Unavailable(err)
	}
	return cluster.Create(ctx, cluster.Config{
		Binaries: bin, Dir: dir, Settings: cfg.Settings, Env: cfg.Env, CacheDir: cfg.CacheDir,
	})
}
