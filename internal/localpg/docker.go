package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/kiloshard/kiloshard/internal/port"
)

// container is a server in a Docker container.
type container struct {
	testcontainers.Container
	docker   *client.Client
	image    string
	host     string
	port     *port.Port
	password string
	dir      string   // in place of volumes, unless empty
	binds    []string // of the directories in dir
}

const (
	probeLimit  = 15 * time.Second // for Docker to say that it is there
	createLimit = 3 * time.Minute  // for Docker to create and start a container whose image it has
	freezeLimit = 30 * time.Second // for the kernel to stop all processes of a container
)

func startDocker(ctx context.Context, cfg Config) (_ engine, version string, err error) {
	docker, host, err := probeDocker(ctx)
	if err != nil {
		return nil, "", notHere(fmt.Errorf("Docker: %w", err))
	}
	defer docker.Close()
	if err := pull(ctx, docker, cfg); err != nil {
		return nil, "", notHere(fmt.Errorf("Docker: image %s: %w", cfg.Image, err))
	}

	c := &container{docker: docker, image: cfg.Image, host: host, password: newPassword()}
	defer func() {
		if err != nil {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
			defer cancel()
			err = errors.Join(err, c.remove(limited))
		}
	}()
	if err := c.makeDir(ctx, cfg.Dir); err != nil {
		return nil, "", fmt.Errorf("Docker: image %s: %w", cfg.Image, err)
	}
	if err := c.create(ctx, cfg); err != nil {
		return nil, "", notHere(fmt.Errorf("Docker: image %s: %w", cfg.Image, err))
	}
	version, err = c.conn().serverVersion(ctx, c.alive)
	return c, version, err
}

// pull fetches the image unless Docker has it. It asks once: without the internet, asking again would take minutes.
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

func (c *container) start(ctx context.Context) error {
	err := c.Container.Start(ctx)
	if err == nil {
		_, err = c.conn().serverVersion(ctx, c.alive)
	}
	if err != nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return errors.Join(err, c.kill(limited))
	}
	return nil
}

// alive returns an error if the server has ended.
func (c *container) alive(ctx context.Context) error {
	state, err := c.State(ctx)
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // whoever waits is told by ctx itself
	case err != nil:
		return err
	case state.Running:
		return nil
	}
	return fmt.Errorf("the server ended by itself (exit status %d); its log ends with:\n%s", state.ExitCode, c.log(ctx))
}

func (c *container) kill(ctx context.Context) error {
	defer c.docker.Close()
	_, err := c.docker.ContainerKill(ctx, c.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	if err != nil && !cerrdefs.IsConflict(err) { // a conflict: it does not run
		return err
	}
	wait := c.docker.ContainerWait(ctx, c.GetContainerID(), client.ContainerWaitOptions{})
	select {
	case <-wait.Result:
		return nil
	case err := <-wait.Error:
		return err
	}
}

func (c *container) shutdown(ctx context.Context) error {
	limit := shutdownLimit
	if err := c.Stop(ctx, &limit); err == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	return c.kill(limited)
}

func (c *container) remove(ctx context.Context) error {
	err := errors.Join(c.removeContainer(ctx), c.removeDir())
	c.port.Release()
	return err
}

func (c *container) removeContainer(ctx context.Context) error {
	if c.Container == nil {
		return nil
	}
	return errors.Join(c.kill(ctx), c.Terminate(ctx, testcontainers.StopTimeout(0)))
}

func (c *container) detach() {}

func (c *container) conn() connString {
	return ownConnString(net.JoinHostPort(c.host, strconv.Itoa(c.port.Number)), c.password)
}

func (c *container) describe() (origin, place string) {
	return fmt.Sprintf("in Docker container %.12s (%s)", c.GetContainerID(), c.image), fmt.Sprintf("port %d", c.port.Number)
}

func (c *container) pid() int        { return 0 }
func (c *container) dataDir() string { return "" }

func (c *container) log(ctx context.Context) string {
	logs, err := c.Logs(ctx)
	if err != nil {
		return ""
	}
	defer logs.Close()
	text, _ := io.ReadAll(logs)
	return tail(strings.ReplaceAll(string(text), "\r\n", "\n"))
}

// freeze tries for a while: on a busy machine the kernel may not get hold of all processes at once.
func (c *container) freeze(ctx context.Context) error {
	for deadline := time.Now().Add(freezeLimit); ; {
		_, err := c.docker.ContainerPause(ctx, c.GetContainerID(), client.ContainerPauseOptions{})
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func (c *container) thaw(ctx context.Context) error {
	state, err := c.State(ctx)
	if err != nil || !state.Paused {
		return err
	}
	_, err = c.docker.ContainerUnpause(ctx, c.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}
