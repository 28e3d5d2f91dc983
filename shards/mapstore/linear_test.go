package mapstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/bench/linear"
	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// checkLinearizable runs 50 clients, which in full make twenty times as many operations.
func checkLinearizable(t *testing.T, kill func(context.Context) error, openOne func(t *testing.T) mapstore.Store) {
	t.Helper()
	cfg := linear.Config{Cluster: cluster, Operations: 200, Kills: 2, Kill: kill}
	if pgtest.Full() {
		cfg.Operations, cfg.Kills = 4000, 8
	}
	for range 10 {
		cfg.Stores = append(cfg.Stores, openOne(t))
	}
	ctx, cancel := context.WithTimeout(context.Background(), testLimit*time.Duration(2+cfg.Operations/1000)) // restarts take long
	defer cancel()
	report, err := linear.Run(ctx, cfg)
	noError(t, err)
	t.Log(report, "last error:", report.LastError)
	for _, wrong := range report.Wrong {
		t.Error(wrong)
	}
	if !report.OK() {
		t.Errorf("seed %d: %s", report.Seed, report)
	}
	if report.Kills != cfg.Kills || report.Operations < cfg.Operations || report.Swaps == 0 || report.Loads == 0 || report.Conflicts == 0 {
		t.Errorf("nothing was tried: %s", report)
	}
}

func TestEtcdIsLinearizable(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	checkLinearizable(t, func(ctx context.Context) error {
		if err := server.Kill(ctx); err != nil {
			return err
		}
		return server.Restart(ctx)
	}, func(t *testing.T) mapstore.Store {
		return openEtcd(t, server)
	})
}

func TestPostgresIsLinearizable(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	if server.Source() == localpg.DSN {
		t.Skip("a server that came by its DSN is not ours to kill: unset KILOSHARD_POSTGRES_DSN")
	}
	dsn := newDatabase(t, server)
	checkLinearizable(t, func(ctx context.Context) error {
		if err := server.Kill(ctx); err != nil {
			return err
		}
		return server.Restart(ctx)
	}, func(t *testing.T) mapstore.Store {
		return openPostgres(t, dsn)
	})
}
