package docker

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
	"github.com/kiloshard/kiloshard/internal/port"
)

const (
	createLimit = 3 * time.Minute // for Docker to create and start a container whose image it has

	// sharedMemory is the size of a container's /dev/shm in bytes. Docker's 64 MiB are too little for parallel queries.
	sharedMemory = 256 << 20
)

// Config says which server to run.
type Config struct {
	Image    string
	Settings map[string]string
	Keep     bool   // testcontainers-go does not remove the container
	Dir      string // parent of a directory for the data; by default, Docker makes volumes
	Logger   *slog.Logger
}

// create creates and starts the container, on a port of its own that stays the same after a restart. Docker finishes what it
// has begun even if the client disconnects, so ctx does not interrupt it: a container could be left.
func create(ctx context.Context, c *container, cfg Config) error {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		c.port.Release()
		if c.port, err = port.Take(); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), createLimit)
		created, err := postgres.Run(limited, c.image, options(c, cfg)...)
		cancel()
		if created != nil && created.Container != nil {
			c.inner = created.Container
		}
		if err == nil || attempt == 10 || !portTaken(err) {
			return err
		}
		if err := cleanup.Do(ctx, c.removeContainer); err != nil {
			return err
		}
		c.inner = nil
	}
}

func options(c *container, cfg Config) []testcontainers.ContainerCustomizer {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Settings)) {
		args = append(args, "-c", name+"="+cfg.Settings[name])
	}
	return []testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(tclog.NewNoopLogger()),
		postgres.WithUsername(login.Superuser),
		postgres.WithPassword(c.password),
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C"}),
		testcontainers.WithCmdArgs(args...),
		testcontainers.WithHostConfigModifier(func(host *dockercontainer.HostConfig) {
			binding := network.PortBinding{HostPort: strconv.Itoa(c.port.Number)}
			if ip, err := netip.ParseAddr(c.host); err == nil && ip.IsLoopback() {
				binding.HostIP = ip
			}
			host.ShmSize = sharedMemory
			host.Binds = c.volumes.binds
			host.PortBindings = network.PortMap{network.MustParsePort("5432/tcp"): {binding}}
		}),
		testcontainers.WithConfigModifier(func(config *dockercontainer.Config) {
			config.StopSignal = "SIGINT" // a fast shutdown of Postgres
			if cfg.Keep {
				// testcontainers' reaper removes the containers that have these labels.
				maps.DeleteFunc(config.Labels, func(name, _ string) bool {
					return strings.HasPrefix(name, "org.testcontainers")
				})
			}
		}),
	}
}

func portTaken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "port is already allocated") || strings.Contains(text, "address already in use")
}
