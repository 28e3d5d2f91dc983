//go:build unix

package pgbouncer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/daemon"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/rundir"
)

// Start starts the pgbouncer of this machine on a free port of 127.0.0.1, as the user that a server would run as, and returns
// when a query through it is answered. On Linux the kernel ends it when this process dies. Passwords are in a file that only its
// user can read, and in no argument list, log or error.
//
// ctx governs the start only. The error is engine.ErrUnavailable if there is no pgbouncer on this machine. After an error nothing
// is left.
func Start(ctx context.Context, cfg Config) (*Bouncer, error) {
	b, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	return b, nil
}

func start(ctx context.Context, cfg Config) (_ *Bouncer, err error) {
	_, server, err := login.Parse(cfg.DSN)
	switch {
	case err != nil:
		return nil, err
	case server.Password == "":
		return nil, errors.New("DSN: expected one with a password")
	}
	program, err := find(ctx, cfg.Program)
	if err != nil {
		return nil, engine.Unavailable(err)
	}
	d, err := daemon.New(ctx, "it", program, rundir.Config{Parent: cfg.Dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	// There is nothing to save, so the process is killed.
	remove := func(ctx context.Context) error { return errors.Join(d.Kill(ctx), d.Remove(ctx)) }
	defer func() {
		if err != nil {
			err = errors.Join(err, cleanup.Do(ctx, remove))
		}
	}()
	users := filepath.Join(d.Dir.Data(), "users.txt")
	if err := d.User.WriteFile(users, []byte(userList(server))); err != nil {
		return nil, err
	}
	if err := d.OnFreePort(func() error { return run(ctx, d, program, server, cfg.Settings, users) }); err != nil {
		return nil, err
	}
	return &Bouncer{
		address: d.Port.Address(), user: server.User, password: server.Password, pid: d.PID, remove: remove,
	}, nil
}

// run starts the program and waits until the server answers through it. After an error the program does not run.
func run(
	ctx context.Context, d *daemon.Daemon, program string, server *pgx.ConnConfig, settings map[string]string, users string,
) error {
	text, err := ini(server, settings, d.Port.Number, users)
	if err != nil {
		return err
	}
	path := filepath.Join(d.Dir.Data(), "pgbouncer.ini")
	if err := d.User.WriteFile(path, []byte(text)); err != nil {
		return err
	}
	cmd := exec.Command(program, path)
	cmd.Env = []string{"LC_ALL=C"}
	dsn := login.URL(d.Port.Address(), server.User, server.Password, server.Database)
	_, err = d.Run(ctx, cmd, dsn, map[string]error{
		"Address already in use": daemon.ErrPortTaken,
		"nowhere to listen on":   daemon.ErrPortTaken,
	})
	if err != nil {
		return errors.Join(err, cleanup.Do(ctx, d.Kill))
	}
	return nil
}

var versionText = regexp.MustCompile(`PgBouncer \d`)

// find returns the path of the given program, or of the pgbouncer of this machine.
func find(ctx context.Context, given string) (string, error) {
	names := []string{given}
	if given == "" {
		// The directories of programs for administrators are not on everybody's PATH.
		names = []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
		cmd := exec.CommandContext(ctx, path, "--version")
		cmd.Env = []string{"LC_ALL=C"}
		out, err := cmd.Output()
		if err == nil && !versionText.Match(out) {
			err = fmt.Errorf("no version in %q", out)
		}
		if err != nil {
			return "", fmt.Errorf("%s --version: %w", path, err)
		}
		return path, nil
	}
	return "", fmt.Errorf("no program %s: install Debian's pgbouncer package", names[0])
}
