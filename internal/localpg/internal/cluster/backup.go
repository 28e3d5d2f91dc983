//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/rundir"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/settings"
)

// conninfoQuote escapes a value in single quotes of a connection string.
var conninfoQuote = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// Backup copies the data to a directory beside its own. pg_basebackup gets the password in its environment, which only its user
// and root can read.
func (c *cluster) Backup(ctx context.Context, logger *slog.Logger) (engine.Copy, error) {
	program := c.bin.Program("pg_basebackup")
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no pg_basebackup in %s: %w", c.bin, errors.ErrUnsupported)
	}
	dir := rundir.Config{Parent: filepath.Dir(c.Dir.Path), Keep: c.Keep, Logger: logger}
	to, err := newCluster(ctx, c.bin, c.env, dir)
	if err != nil {
		return nil, err
	}
	to.password, to.origin = c.password, c.Port.Number
	cmd := exec.Command(program, "--pgdata="+to.DataDir(), "--host=127.0.0.1", fmt.Sprint("--port=", to.origin),
		"--username="+login.Superuser, "--no-password", "--checkpoint=fast", "--wal-method=stream", "--no-sync")
	cmd.Env = append([]string{"PGPASSWORD=" + c.password, "PGSSLMODE=disable"}, c.env...)
	if err := to.RunToEnd(ctx, cmd); err != nil {
		return nil, errors.Join(err, cleanup.Do(ctx, to.Remove))
	}
	return to, nil
}

func (c *cluster) Follow(ctx context.Context, name string, own map[string]string) (version string, err error) {
	// Only the server's user can read the file that contains the password.
	conninfo := fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s sslmode=disable application_name='%s'",
		c.origin, login.Superuser, c.password, conninfoQuote.Replace(name))
	if err := settings.Append(c.file("postgresql.conf"), map[string]string{"primary_conninfo": conninfo}); err != nil {
		return "", err
	}
	return c.startFromCopy(ctx, "standby.signal", own)
}

func (c *cluster) Restore(ctx context.Context, own map[string]string) (version string, err error) {
	return c.startFromCopy(ctx, "recovery.signal", own)
}

// startFromCopy starts the server with a signal file. The settings override those of the copy.
func (c *cluster) startFromCopy(ctx context.Context, signal string, own map[string]string) (version string, err error) {
	if err := settings.Append(c.file("postgresql.conf"), own); err != nil {
		return "", err
	}
	if err := c.User.WriteFile(c.file(signal), nil); err != nil {
		return "", err
	}
	return c.startOnFreePort(ctx)
}
