//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kiloshard/kiloshard/internal/port"
)

// cluster is a server run from binaries on this machine: a child of this process with a data directory.
type cluster struct {
	bin      binaries
	user     identity
	dir      *runDir
	keep     bool
	env      []string
	password string
	port     *port.Port

	mu    sync.Mutex // guards what follows
	child *process   // nil before the first start

	segments []segment // shared memory that a killed server left
}

var (
	errPortTaken   = errors.New("the server's port was taken by another process")
	errMemoryInUse = errors.New("the shared memory of the server that was killed is still in use")
)

func startLocal(ctx context.Context, cfg Config) (engine, string, error) {
	bin, err := findBinaries(ctx, cfg.BinDir)
	if err != nil {
		return nil, "", notHere(err)
	}
	return startCluster(ctx, cfg, bin)
}

// startCluster makes a new data directory and starts a server on it.
func startCluster(ctx context.Context, cfg Config, bin binaries) (_ engine, version string, err error) {
	user, err := serverIdentity()
	if err != nil {
		return nil, "", notHere(err)
	}
	if err := user.canRun(bin.program("postgres")); err != nil {
		return nil, "", notHere(err)
	}
	c := &cluster{bin: bin, user: user, keep: cfg.Keep, env: cfg.Env}
	if c.dir, err = newRunDir(ctx, cfg, user); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
			defer cancel()
			err = errors.Join(err, c.remove(limited))
		}
	}()
	if err := c.fill(ctx, cfg); err != nil {
		return nil, "", err
	}
	if version, err = c.runOnFreePort(ctx); err != nil {
		return nil, "", err
	}
	return c, version, c.changePassword(ctx)
}

// runOnFreePort gives the server a port and starts it. Between the two another process may take the port.
func (c *cluster) runOnFreePort(ctx context.Context) (version string, err error) {
	for range 10 {
		c.port.Release()
		if c.port, err = port.Take(); err != nil {
			return "", err
		}
		if version, err = c.run(ctx); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return version, err
}

// start starts the server again, on its port. Somebody may have taken that meanwhile, such as another server that was
// started to be thrown away; who waits a little may have it back. So it is with shared memory: whoever looks at a process
// in /proc may keep its memory for a moment after its end.
func (c *cluster) start(ctx context.Context) error {
	patience := time.After(time.Minute)
	for {
		_, err := c.run(ctx)
		if !errors.Is(err, errPortTaken) && !errors.Is(err, errMemoryInUse) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-patience:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// run starts the server and waits until it answers. After an error it does not run.
func (c *cluster) run(ctx context.Context) (version string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	out, err := c.dir.openLog()
	if err != nil {
		return "", err
	}
	defer out.Close()
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	// The memory of parallel queries is in files of the data directory: no others are left by a server that is killed.
	cmd := exec.Command(c.bin.program("postgres"), "-D", c.dir.data(), "-p", fmt.Sprint(c.port.Number),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "logging_collector=off", "-c", "dynamic_shared_memory_type=mmap")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir.data(), c.env, out, out
	child, err := spawn(cmd, c.user, c.dir, c.keep)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	c.child = child
	c.mu.Unlock()

	version, err = c.conn().serverVersion(ctx, func(context.Context) error {
		if !child.ended() {
			return nil
		}
		log := c.dir.logFrom(from)
		if strings.Contains(log, "could not create any TCP/IP sockets") {
			return errPortTaken
		}
		if strings.Contains(log, "pre-existing shared memory block") {
			return errMemoryInUse
		}
		return fmt.Errorf("the server ended by itself (%w); its log ends with:\n%s", child.err, tail(log))
	})
	if err != nil {
		// Not by a kill: it may have made shared memory that it has not attached yet, which nobody would know of.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return "", errors.Join(err, c.end(limited, syscall.SIGQUIT))
	}
	c.segments = nil // what a killed server left, its successor has removed
	return version, nil
}

func (c *cluster) kill(ctx context.Context) error {
	child := c.current()
	if child == nil {
		return nil
	}
	segments, err := child.killAll(ctx)
	c.segments = append(c.segments, segments...)
	return err
}

func (c *cluster) shutdown(ctx context.Context) error { return c.end(ctx, syscall.SIGINT) }

// end asks the server to end; one that has not done so when ctx ends, or in time, is killed. See
// https://www.postgresql.org/docs/current/server-shutdown.html.
func (c *cluster) end(ctx context.Context, sig syscall.Signal) error {
	child := c.current()
	if child == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	child.signal(sig)
	select {
	case <-child.done:
		return nil
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	return c.kill(limited)
}

func (c *cluster) remove(ctx context.Context) error {
	// An immediate shutdown, other than a kill, leaves no shared memory.
	_ = c.thaw(ctx) // what is frozen does not end; what cannot be thawed is killed
	errs := []error{c.end(ctx, syscall.SIGQUIT)}
	for _, s := range c.segments {
		errs = append(errs, s.remove(c.user))
	}
	errs = append(errs, c.dir.remove(ctx))
	c.port.Release()
	return errors.Join(errs...)
}

func (c *cluster) detach() {
	if child := c.current(); child != nil {
		child.detach()
	}
}

func (c *cluster) current() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.child
}

func (c *cluster) conn() connString { return ownConnString(c.port.Address(), c.password) }

func (c *cluster) describe() (origin, place string) {
	return "from " + c.bin.dir, fmt.Sprintf("port %d", c.port.Number)
}

func (c *cluster) pid() int {
	child := c.current()
	if child == nil || child.ended() {
		return 0
	}
	return child.pid
}

func (c *cluster) dataDir() string            { return c.dir.data() }
func (c *cluster) log(context.Context) string { return tail(c.dir.logFrom(0)) }
