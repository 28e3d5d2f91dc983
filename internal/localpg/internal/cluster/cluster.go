//go:build unix

// Package cluster runs Postgres servers from binaries on this machine.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/binaries"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/daemon"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/initdb"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/rundir"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/settings"
)

// Config says which server to create.
type Config struct {
	Binaries binaries.Dir
	Dir      rundir.Config
	Settings map[string]string // for postgresql.conf
	Env      []string          // all of the server's environment
	CacheDir string            // of templates
}

// cluster is a data directory and its server, a child of this process.
type cluster struct {
	*daemon.Daemon
	bin      binaries.Dir
	env      []string
	password string
	origin   int // port of the server that the data was copied from, if it was
}

var errMemoryInUse = errors.New("the shared memory of the server that was killed is still in use")

// Create creates a data directory and starts a server on it. After an error nothing is left. The error is engine.ErrUnavailable if
// no user can run the server.
func Create(ctx context.Context, cfg Config) (_ engine.Engine, version string, err error) {
	c, err := newCluster(ctx, cfg.Binaries, cfg.Env, cfg.Dir)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cleanup.Do(ctx, c.Remove))
		}
	}()
	if c.password, err = initdb.Fill(ctx, c.Daemon, c.bin, cfg.CacheDir, cfg.Dir.Logger); err != nil {
		return nil, "", err
	}
	if err := settings.Append(c.file("postgresql.conf"), cfg.Settings); err != nil {
		return nil, "", err
	}
	if version, err = c.startOnFreePort(ctx); err != nil {
		return nil, "", err
	}
	return c, version, c.changePassword(ctx)
}

// newCluster makes the directory of a cluster.
func newCluster(ctx context.Context, bin binaries.Dir, env []string, dir rundir.Config) (*cluster, error) {
	d, err := daemon.New(ctx, "the server", bin.Program("postgres"), dir)
	return &cluster{Daemon: d, bin: bin, env: env}, err
}

func (c *cluster) startOnFreePort(ctx context.Context) (version string, err error) {
	err = c.OnFreePort(func() error {
		version, err = c.run(ctx)
		return err
	})
	return version, err
}

// Start retries for a minute while another process has the port, as another temporary server may. It also retries while the shared memory of a killed server is in use: a process that reads /proc may keep that
// for a moment.
func (c *cluster) Start(ctx context.Context) error {
	limit := time.After(time.Minute)
	for {
		_, err := c.run(ctx)
		if !errors.Is(err, daemon.ErrPortTaken) && !errors.Is(err, errMemoryInUse) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-limit:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// run starts the server and waits until it answers. After an error the server does not run.
func (c *cluster) run(ctx context.Context) (version string, err error) {
	// mmap keeps the memory of parallel queries in files of the data directory, so a killed server leaves none elsewhere.
	cmd := exec.Command(c.bin.Program("postgres"), "-D", c.DataDir(), "-p", fmt.Sprint(c.Port.Number),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "logging_collector=off", "-c", "dynamic_shared_memory_type=mmap")
	cmd.Env = c.env
	version, err = c.Run(ctx, cmd, c.DSN(), map[string]error{
		"could not create any TCP/IP sockets": daemon.ErrPortTaken,
		"pre-existing shared memory block":    errMemoryInUse,
	})
	if err != nil {
		// A kill could leave shared memory that the server has made and not attached yet, which we cannot find.
		err = errors.Join(err, cleanup.Do(ctx, func(ctx context.Context) error { return c.End(ctx, syscall.SIGQUIT) }))
	}
	return version, err
}

// changePassword replaces the password of the template. It waits until the change is durable, so it survives a kill of the server.
func (c *cluster) changePassword(ctx context.Context) error {
	config, err := pgx.ParseConfig(string(c.DSN()))
	if err != nil {
		return err
	}
	config.RuntimeParams["default_transaction_read_only"] = "off"
	config.RuntimeParams["synchronous_commit"] = "local"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	password := login.NewPassword()
	_, err = conn.PgConn().Exec(ctx, "alter role "+login.Superuser+" password '"+login.Verifier(password)+"'").ReadAll()
	if err == nil {
		c.password = password
	}
	return errors.Join(err, conn.Close(ctx))
}

// Shutdown is described at https://www.postgresql.org/docs/current/server-shutdown.html.
func (c *cluster) Shutdown(ctx context.Context) error { return c.End(ctx, syscall.SIGINT) }

// Remove shuts the server down immediately. Unlike a kill, that leaves no shared memory.
func (c *cluster) Remove(ctx context.Context) error {
	_ = c.Thaw(ctx) // a frozen server cannot shut down; End kills one that cannot be thawed
	return errors.Join(c.End(ctx, syscall.SIGQUIT), c.Daemon.Remove(ctx))
}

func (c *cluster) DSN() login.DSN {
	return login.URL(c.Port.Address(), login.Superuser, c.password, login.Superuser)
}

func (c *cluster) Describe() (origin, place string) {
	return "from " + string(c.bin), fmt.Sprintf("port %d", c.Port.Number)
}

func (c *cluster) DataDir() string { return c.Dir.Data() }

// file returns the path of a file of the data directory.
func (c *cluster) file(name string) string { return filepath.Join(c.DataDir(), name) }
