//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

var initdbOptions = []string{
	"--username=" + superuser, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
}

// fill fills the data directory with a copy of the template, or with what initdb makes, and writes the settings.
func (c *cluster) fill(ctx context.Context, cfg Config) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from, noTemplate := templateFor(cfg, c.bin)
	if noTemplate == nil {
		c.password, noTemplate = from.copyTo(c.dir.data(), c.user)
	}
	if noTemplate != nil {
		cfg.Logger.DebugContext(ctx, "run initdb", slog.Any("why", noTemplate))
		if err := c.initdb(ctx); err != nil {
			return err
		}
		if from.dir != "" {
			if err := from.save(c.dir.data(), c.password); err != nil {
				cfg.Logger.DebugContext(ctx, "keep no template of initdb", slog.Any("error", err))
			}
		}
	}
	return writeSettings(filepath.Join(c.dir.data(), "postgresql.conf"), cfg.Settings)
}

// initdb runs initdb in the data directory, after emptying it.
func (c *cluster) initdb(ctx context.Context) (err error) {
	left, err := filepath.Glob(filepath.Join(c.dir.data(), "*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return err
	}
	c.password = newPassword()
	// The server takes the verifier as the password, since it has the form of one.
	passwordFile := filepath.Join(c.dir.path, "password")
	if err := os.WriteFile(passwordFile, []byte(verifier(c.password)+"\n"), 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(passwordFile)) }()
	if err := c.user.give(passwordFile); err != nil {
		return err
	}
	cmd := exec.Command(c.bin.program("initdb"), slices.Concat(initdbOptions, []string{"-D", c.dir.data(), "--pwfile=" + passwordFile})...)
	cmd.Env = []string{"LC_ALL=C"}
	return c.runToEnd(ctx, cmd)
}

// changePassword gives the superuser, whose password is that of a template, one of this server's own. The server that is killed
// after it keeps it.
func (c *cluster) changePassword(ctx context.Context) error {
	config, err := pgx.ParseConfig(string(c.conn()))
	if err != nil {
		return err
	}
	config.RuntimeParams["default_transaction_read_only"] = "off"
	config.RuntimeParams["synchronous_commit"] = "local"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	password := newPassword()
	_, err = conn.PgConn().Exec(ctx, "alter role "+superuser+" password '"+verifier(password)+"'").ReadAll()
	if err == nil {
		c.password = password
	}
	return errors.Join(err, conn.Close(ctx))
}

// runToEnd runs a program as the server's user, in the data directory, and waits for its end. When ctx ends, it is
// ended.
func (c *cluster) runToEnd(ctx context.Context, cmd *exec.Cmd) error {
	out, err := c.dir.openLog()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir.data(), out, out
	child, err := spawn(cmd, c.user, c.dir, false)
	if err != nil {
		return err
	}
	select {
	case <-child.done:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), child.endGroup(context.WithoutCancel(ctx)))
	}
	if child.err != nil {
		return fmt.Errorf("%s: %w; its output ends with:\n%s", filepath.Base(cmd.Path), child.err, tail(c.dir.logFrom(0)))
	}
	return nil
}

// writeSettings appends the settings to a postgresql.conf, where of a setting given twice the last one counts.
func writeSettings(path string, settings map[string]string) error {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `''`)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, quote.Replace(settings[name]))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}
