package docker

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

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
	"github.com/kiloshard/kiloshard/internal/port"
)

// container is a server in a Docker container.
type container struct {
	inner    testcontainers.Container // nil before it is created
	docker   *client.Client
	image    string
	host     string
	port     *port.Port
	password string
	volumes  volumes
}

const (
	shutdownLimit = time.Minute      // for a server to shut down before it is killed
	freezeLimit   = 30 * time.Second // for the kernel to stop all processes of a container
)

func (c *container) Start(ctx context.Context) error {
	err := c.inner.Start(ctx)
	if err == nil {
		_, err = c.DSN().Wait(ctx, c.alive)
	}
	if err != nil {
		return errors.Join(err, cleanup.Do(ctx, c.Kill))
	}
	return nil
}

// alive returns an error if the server has ended.
func (c *container) alive(ctx context.Context) error {
	state, err := c.inner.State(ctx)
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the caller sees that ctx has ended
	case err != nil:
		return err
	case state.Running:
		return nil
	}
	return fmt.Errorf("the server ended by itself (exit status %d); its log ends with:\n%s", state.ExitCode, c.Log(ctx))
}

func (c *container) Kill(ctx context.Context) error {
	defer c.docker.Close()
	_, err := c.docker.ContainerKill(ctx, c.inner.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	if err != nil && !cerrdefs.IsConflict(err) { // a conflict: it does not run
		return err
	}
	wait := c.docker.ContainerWait(ctx, c.inner.GetContainerID(), client.ContainerWaitOptions{})
	select {
	case <-wait.Result:
		return nil
	case err := <-wait.Error:
		return err
	}
}

func (c *container) Shutdown(ctx context.Context) error {
	limit := shutdownLimit
	if err := c.inner.Stop(ctx, &limit); err == nil {
		return nil
	}
	return cleanup.Do(ctx, c.Kill)
}

func (c *container) Remove(ctx context.Context) error {
	err := errors.Join(c.removeContainer(ctx), c.volumes.remove())
	c.port.Release()
	return err
}

func (c *container) removeContainer(ctx context.Context) error {
	if c.inner == nil {
		return nil
	}
	return errors.Join(c.Kill(ctx), c.inner.Terminate(ctx, testcontainers.StopTimeout(0)))
}

func (c *container) DSN() login.DSN {
	return login.URL(net.JoinHostPort(c.host, strconv.Itoa(c.port.Number)), login.Superuser, c.password, login.Superuser)
}

func (c *container) Describe() (origin, place string) {
	return fmt.Sprintf("in Docker container %.12s (%s)", c.inner.GetContainerID(), c.image), fmt.Sprintf("port %d", c.port.Number)
}

func (c *container) PID() int        { return 0 }
func (c *container) DataDir() string { return "" }
func (c *container) Detach()         {}

func (c *container) Log(ctx context.Context) string {
	logs, err := c.inner.Logs(ctx)
	if err != nil {
		return ""
	}
	defer logs.Close()
	text, _ := io.ReadAll(logs)
	return login.Tail(strings.ReplaceAll(string(text), "\r\n", "\n"))
}

// Freeze retries, since on a busy machine the kernel may fail to stop all processes at once.
func (c *container) Freeze(ctx context.Context) error {
	for deadline := time.Now().Add(freezeLimit); ; {
		_, err := c.docker.ContainerPause(ctx, c.inner.GetContainerID(), client.ContainerPauseOptions{})
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

func (c *container) Thaw(ctx context.Context) error {
	state, err := c.inner.State(ctx)
	if err != nil || !state.Paused {
		return err
	}
	_, err = c.docker.ContainerUnpause(ctx, c.inner.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}
