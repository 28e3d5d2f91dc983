//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/port"
)

// bouncer is the process of a PgBouncer with its directory.
type bouncer struct {
	cfg     PgBouncerConfig
	server  *pgx.ConnConfig
	program string
	user    identity
	dir     *runDir
	port    *port.Port
	child   *process // nil if it could not be started
}

func startPgBouncer(ctx context.Context, cfg PgBouncerConfig) (_ *PgBouncer, err error) {
	_, server, err := parseDSN(cfg.DSN)
	switch {
	case err != nil:
		return nil, err
	case server.Password == "":
		return nil, errors.New("DSN: expected one with a password")
	}
	program, err := findPgBouncer(cfg.Program)
	if err != nil {
		return nil, notHere(err)
	}
	version, err := pgBouncerVersion(ctx, program)
	if err != nil {
		return nil, notHere(err)
	}
	user, err := serverIdentity() // PgBouncer refuses to be run by root, as Postgres does
	if err != nil {
		return nil, notHere(err)
	}
	if err := user.canRun(program); err != nil {
		return nil, notHere(err)
	}
	b := &bouncer{cfg: cfg, server: server, program: program, user: user}
	if b.dir, err = newRunDir(ctx, Config{Dir: cfg.Dir, Logger: cfg.Logger}, user); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
			defer cancel()
			err = errors.Join(err, b.remove(limited))
		}
	}()
	if err := b.write(b.usersPath(), usersFile(server)); err != nil {
		return nil, err
	}
	client := &PgBouncer{version: version, user: server.User, password: server.Password, engine: b}
	// Between the choice of a port and its use another process may take it.
	for range 10 {
		if err = b.run(ctx, client); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return client, err
}

// run starts the process on a free port and waits until the server answers by way of it. After an error it does not run.
func (b *bouncer) run(ctx context.Context, client *PgBouncer) (err error) {
	b.port.Release()
	if b.port, err = port.Take(); err != nil {
		return err
	}
	ini, err := b.cfg.ini(b.server, b.port.Number, b.usersPath())
	if err != nil {
		return err
	}
	path := filepath.Join(b.dir.data(), "pgbouncer.ini")
	if err := b.write(path, ini); err != nil {
		return err
	}
	out, err := b.dir.openLog()
	if err != nil {
		return err
	}
	defer out.Close()
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.Command(b.program, path)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir.data(), []string{"LC_ALL=C"}, out, out
	child, err := spawn(cmd, b.user, b.dir, false)
	if err != nil {
		return err
	}
	b.child = child
	_, err = connString(client.DSN(b.server.Database)).serverVersion(ctx, func(context.Context) error {
		if !child.ended() {
			return nil
		}
		log := b.dir.logFrom(from)
		if strings.Contains(log, "Address already in use") || strings.Contains(log, "nowhere to listen on") {
			return errPortTaken
		}
		return fmt.Errorf("it ended by itself (%w); its log ends with:\n%s", child.err, tail(log))
	})
	if err != nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return errors.Join(err, b.kill(limited))
	}
	return nil
}

// kill ends the process with SIGKILL, for it has nothing to save.
func (b *bouncer) kill(ctx context.Context) error {
	if b.child == nil {
		return nil
	}
	_, err := b.child.killAll(ctx)
	return err
}

func (b *bouncer) remove(ctx context.Context) error {
	err := errors.Join(b.kill(ctx), b.dir.remove(ctx))
	b.port.Release()
	return err
}

func (b *bouncer) address() string { return b.port.Address() }

func (b *bouncer) pid() int {
	if b.child == nil || b.child.ended() {
		return 0
	}
	return b.child.pid
}

func (b *bouncer) usersPath() string { return filepath.Join(b.dir.data(), "users.txt") }

// write writes a file that the user alone can read.
func (b *bouncer) write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return b.user.give(path)
}

func findPgBouncer(program string) (string, error) {
	names := []string{program}
	if program == "" {
		// The directories of programs for administrators are not on everybody's PATH.
		names = []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("no program %s: install Debian's pgbouncer package", names[0])
}

var pgBouncerVersionText = regexp.MustCompile(`PgBouncer (\d[0-9.]*)`)

func pgBouncerVersion(ctx context.Context, program string) (string, error) {
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env = []string{"LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	match := pgBouncerVersionText.FindSubmatch(out)
	if match == nil {
		return "", fmt.Errorf("%s --version: no version in %q", program, out)
	}
	return string(match[1]), nil
}
