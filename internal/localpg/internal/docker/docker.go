// Package docker runs Postgres servers in containers, by way of testcontainers-go.
package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
)

const probeLimit = 15 * time.Second // for Docker to answer

// Run creates a container and returns when its server answers. After an error no container is left. The error is
// engine.ErrUnavailable if Docker or the image is missing, or Docker cannot run it.
func Run(ctx context.Context, cfg Config) (_ engine.Engine, version string, err error) {
	docker, host, err := probe(ctx)
	if err != nil {
		return nil, "", engine.Unavailable(fmt.Errorf("Docker: %w", err))
	}
	defer docker.Close()
	if err := pull(ctx, docker, cfg); err != nil {
		return nil, "", engine.Unavailable(fmt.Errorf("Docker: image %s: %w", cfg.Image, err))
	}
	c := &container{docker: docker, image: cfg.Image, host: host, password: login.NewPassword()}
	defer func() {
		if err != nil {
			err = errors.Join(err, cleanup.Do(ctx, c.Remove))
		}
	}()
	if c.volumes, err = makeVolumes(ctx, docker, cfg.Image, cfg.Dir); err != nil {
		return nil, "", fmt.Errorf("Docker: image %s: %w", cfg.Image, err)
	}
	if err := create(ctx, c, cfg); err != nil {
		return nil, "", engine.Unavailable(fmt.Errorf("Docker: image %s: %w", cfg.Image, err))
	}
	version, err = c.DSN().Wait(ctx, c.alive)
	return c, version, err
}

// silence turns off what testcontainers-go prints to standard error. Part of it cannot be turned off for one container.
var silence = sync.OnceFunc(func() { tclog.SetDefault(tclog.NewNoopLogger()) })

// probe finds Docker as testcontainers-go does, and returns the host of the containers' ports.
func probe(ctx context.Context) (*client.Client, string, error) {
	silence()
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	// If testcontainers-go does not find Docker, it remembers that until this process ends, even if it only lacked time. So
	// ctx does not end the search.
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

// pull pulls the image unless Docker has it. It tries once: without the internet, retries would take minutes.
func pull(ctx context.Context, docker *client.Client, cfg Config) error {
	if _, err := docker.ImageInspect(ctx, cfg.Image); !cerrdefs.IsNotFound(err) {
		return err
	}
	cfg.Logger.InfoContext(ctx, "pulling "+cfg.Image)
	response, err := docker.ImagePull(ctx, cfg.Image, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	return response.Wait(ctx)
}
