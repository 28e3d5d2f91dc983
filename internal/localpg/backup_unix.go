//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// backupOf is a cluster whose data was copied from another one.
type backupOf struct {
	*cluster
	origin int // the port of the other one
}

// conninfoQuote quotes what stands between single quotes in keywords and values.
var conninfoQuote = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// backup copies the data of a running server into a directory of its own beside it. The password goes to pg_basebackup
// by its environment, which only its own user and root can read.
func (c *cluster) backup(ctx context.Context, logger *slog.Logger) (_ copied, err error) {
	program := c.bin.program("pg_basebackup")
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no pg_basebackup in %s: %w", c.bin.dir, errors.ErrUnsupported)
	}
	to := &cluster{bin: c.bin, user: c.user, keep: c.keep, env: c.env, password: c.password}
	parent := filepath.Dir(c.dir.path)
	if to.dir, err = newRunDir(ctx, Config{Dir: parent, Keep: c.keep, Logger: logger}, c.user); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeCopy(ctx, backupOf{to, c.port.Number}))
		}
	}()
	cmd := exec.Command(program, "--pgdata="+to.dir.data(), "--host=127.0.0.1", fmt.Sprint("--port=", c.port.Number),
		"--username="+superuser, "--no-password", "--checkpoint=fast", "--wal-method=stream", "--no-sync")
	cmd.Env = append([]string{"PGPASSWORD=" + c.password, "PGSSLMODE=disable"}, c.env...)
	if err := to.runToEnd(ctx, cmd); err != nil {
		return nil, err
	}
	return backupOf{to, c.port.Number}, nil
}

func (b backupOf) follow(ctx context.Context, name string, settings map[string]string) (string, error) {
	// The file with the password is one that only the server's user can read.
	conninfo := fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s sslmode=disable application_name='%s'",
		b.origin, superuser, b.password, conninfoQuote.Replace(name))
	return b.recover(ctx, "standby.signal", map[string]string{"primary_conninfo": conninfo}, settings)
}

func (b backupOf) restore(ctx context.Context, settings map[string]string) (string, error) {
	return b.recover(ctx, "recovery.signal", settings)
}

// recover starts the server in the way that the signal file stands for. Later settings go over earlier ones.
func (b backupOf) recover(ctx context.Context, signal string, settings ...map[string]string) (string, error) {
	for _, these := range settings {
		if err := writeSettings(filepath.Join(b.dir.data(), "postgresql.conf"), these); err != nil {
			return "", err
		}
	}
	path := filepath.Join(b.dir.data(), signal)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return "", err
	}
	if err := b.user.give(path); err != nil {
		return "", err
	}
	return b.runOnFreePort(ctx)
}
