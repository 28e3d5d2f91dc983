package localpg

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"github.com/kiloshard/kiloshard/internal/port"
)

// sharedMemory is the size of a container's /dev/shm in bytes. Docker's 64 MiB are too little for parallel queries.
const sharedMemory = 256 << 20

// silence turns off what testcontainers-go prints to standard error. Part of it cannot be turned off for one container.
var silence = sync.OnceFunc(func() { tclog.SetDefault(tclog.NewNoopLogger()) })

// probeDocker finds Docker as testcontainers-go does, and returns the host where the ports of containers are.
func probeDocker(ctx context.Context) (*client.Client, string, error) {
	silence()
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	// testcontainers-go remembers for the life of the process that Docker was not found, even if that was for lack of
	// time. So ctx does not cut it short.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeLimit)
	defer cancel()
	docker, err := testcontainers.NewDockerClientWithOpts(limited)
	if err != nil {
		return nil, "", err
	}
	defer docker.Close()
	if _, err := docker.Ping(limited, client.PingOptions{}); err != nil {
		return nil, "", err
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, "", err
	}
	defer provider.Close()
	host, err := provider.DaemonHost(limited)
	if host == "localhost" {
		host = "127.0.0.1" // the port is not bound to ::1
	}
	return docker.Client, host, err
}

// create creates and starts the container, on a port that is its own so that it stays the same after a restart. Docker
// finishes what it has begun even if the client goes away, so ctx does not cut it short: else a container might be
// left.
func (c *container) create(ctx context.Context, cfg Config) error {
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
		created, err := postgres.Run(limited, c.image, c.options(cfg)...)
		cancel()
		if created != nil && created.Container != nil {
			c.Container = created.Container
		}
		if err == nil || attempt == 10 || !portTaken(err) {
			return err
		}
		limited, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		err = c.removeContainer(limited)
		cancel()
		if err != nil {
			return err
		}
		c.Container = nil
	}
}

func (c *container) options(cfg Config) []testcontainers.ContainerCustomizer {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Settings)) {
		args = append(args, "-c", name+"="+cfg.Settings[name])
	}
	return []testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(tclog.NewNoopLogger()),
		postgres.WithUsername(superuser),
		postgres.WithPassword(c.password),
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C"}),
		testcontainers.WithCmdArgs(args...),
		testcontainers.WithHostConfigModifier(func(host *dockercontainer.HostConfig) {
			binding := network.PortBinding{HostPort: strconv.Itoa(c.port.Number)}
			if ip, err := netip.ParseAddr(c.host); err == nil && ip.IsLoopback() {
				binding.HostIP = ip
			}
			host.ShmSize = sharedMemory
			host.Binds = c.binds
			host.PortBindings = network.PortMap{network.MustParsePort("5432/tcp"): {binding}}
		}),
		testcontainers.WithConfigModifier(func(config *dockercontainer.Config) {
			config.StopSignal = "SIGINT" // to Postgres a fast shutdown
			if cfg.Keep {
				// It is by these labels that testcontainers' reaper knows what to remove.
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
