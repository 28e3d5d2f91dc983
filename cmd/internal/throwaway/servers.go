// Package throwaway starts the servers of bench and demo, as the environment says.
package throwaway

import (
	"context"
	"fmt"
	"os"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

// LocalConfig is how this program starts throw-away servers, as the environment says.
func LocalConfig() localpg.Config {
	return localpg.Config{
		DSN:   os.Getenv("KILOSHARD_POSTGRES_DSN"),
		Image: os.Getenv("KILOSHARD_POSTGRES_IMAGE"),
	}
}

// WithServers runs fn with throw-away servers, and stops them.
func WithServers(ctx context.Context, a *cli.App, n int, fn func([]*localpg.Server) error) error {
	return WithServersOf(ctx, a, n, LocalConfig(), fn)
}

// WithServersOf is WithServers for servers of another config.
func WithServersOf(ctx context.Context, a *cli.App, n int, cfg localpg.Config, fn func([]*localpg.Server) error) (err error) {
	var servers []*localpg.Server
	defer func() {
		for _, s := range servers {
			stopErr := s.Stop(context.WithoutCancel(ctx))
			if err == nil {
				err = stopErr
			}
		}
	}()
	for range n {
		s, err := localpg.Start(ctx, cfg)
		if err != nil {
			return err
		}
		servers = append(servers, s)
		fmt.Fprintln(a.Stderr, "on", s.Describe())
	}
	return fn(servers)
}

// NewHosts makes a new database on each of the servers at every call.
func NewHosts(servers []*localpg.Server) func(context.Context) ([]shards.Host, error) {
	databases := 0
	return func(ctx context.Context) ([]shards.Host, error) {
		hosts := make([]shards.Host, len(servers))
		for i, s := range servers {
			databases++
			dsn, err := s.CreateDatabase(ctx, fmt.Sprintf("kiloshard_bench_%d_%d", os.Getpid(), databases))
			if err != nil {
				return nil, err
			}
			hosts[i] = shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: dsn}
		}
		return hosts, nil
	}
}
