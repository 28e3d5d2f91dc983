//go:build unix

package localpg_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// dirVariable tells a role where to put its servers.
const dirVariable = "LOCALPG_TEST_DIR"

// roles are what a copy of the test binary does instead of running the tests.
var roles = map[string]func() error{
	"serve":  serve,
	"keep":   keep,
	"cycle":  cycle,
	"bounce": bounce,
}

// report is what a role says to the test that started it, in one line.
type report struct {
	PID, UID  int
	DSN, Data string
}

func say(server *localpg.Server) error {
	return json.NewEncoder(os.Stdout).Encode(report{server.PID(), os.Geteuid(), server.DSN("postgres"), server.DataDir()})
}

// serve starts a server and waits for its own end.
func serve() error {
	server, err := localpg.Start(context.Background(), localpg.Config{Source: localpg.Local, Dir: os.Getenv(dirVariable)})
	if err != nil {
		return err
	}
	if err := say(server); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Stop(context.Background())
}

// keep starts a server that is kept, kills and restarts it, and ends.
func keep() error {
	ctx := context.Background()
	server, err := localpg.Start(ctx, localpg.Config{Source: localpg.Local, Dir: os.Getenv(dirVariable), Keep: true})
	if err != nil {
		return err
	}
	return errors.Join(server.Kill(ctx), server.Restart(ctx), say(server), server.Stop(ctx))
}

// cycle does with a server all that can be done with it.
func cycle() error {
	ctx := context.Background()
	server, err := localpg.Start(ctx, localpg.Config{Source: localpg.Local, Dir: os.Getenv(dirVariable)})
	if err != nil {
		return err
	}
	dsn, err := server.CreateDatabase(ctx, "app")
	err = errors.Join(err, say(server), server.Kill(ctx), server.Restart(ctx))
	if err == nil {
		var conn *pgx.Conn
		if conn, err = pgx.Connect(ctx, dsn); err == nil {
			err = conn.Close(ctx)
		}
	}
	return errors.Join(err, server.Stop(ctx))
}

// bounce starts a PgBouncer in front of a server and waits for its own end. It says where they are, with the PID of the
// PgBouncer, or 0 if there is none on this machine.
func bounce() (err error) {
	ctx, dir := context.Background(), os.Getenv(dirVariable)
	server, err := localpg.Start(ctx, localpg.Config{Source: localpg.Local, Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(ctx)) }()
	r := report{UID: os.Geteuid(), DSN: server.DSN("postgres"), Data: server.DataDir()}
	bouncer, err := localpg.StartPgBouncer(ctx, localpg.PgBouncerConfig{DSN: r.DSN, Dir: dir})
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, bouncer.Stop(ctx)) }()
		r.PID, r.DSN = bouncer.PID(), bouncer.DSN("postgres")
	case !errors.Is(err, localpg.ErrUnavailable):
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// play starts a copy of the test binary in a role and returns it with its report. It ends with the test at the latest.
func play(t *testing.T, role, dir string, attr *syscall.SysProcAttr) (*osexec.Cmd, report) {
	t.Helper()
	cmd := osexec.Command(copyOfBinary(t))
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir,
		"PGDATABASE=nowhere", "PGUSER=nobody", "PGHOST=invalid", "PGSSLMODE=require") // which are not for our own servers
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = attr
	stdout, err := cmd.StdoutPipe()
	noError(t, err)
	stdin, err := cmd.StdinPipe()
	noError(t, err)
	noError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // some tests have waited already
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	noError(t, err)
	var r report
	noError(t, json.Unmarshal([]byte(line), &r))
	return cmd, r
}

// copyOfBinary returns the test binary at a place where every user can run it.
func copyOfBinary(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	noError(t, err)
	binary, err := os.ReadFile(own)
	noError(t, err)
	path := filepath.Join(publicDir(t), "localpg.test")
	writeProgram(t, path, binary)
	t.Cleanup(func() { noError(t, os.Remove(path)) })
	return path
}

// writeProgram writes a program that every user can run, at once: a child of another test would hold the file open between its
// fork and its exec, and what is open for writing cannot be run (ETXTBSY).
func writeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	noError(t, os.WriteFile(path, content, 0o755))
}
