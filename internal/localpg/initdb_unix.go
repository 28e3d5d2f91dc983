//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// initdb fills the data directory and writes the settings.
func (c *cluster) initdb(ctx context.Context, settings map[string]string) (err error) {
	passwordFile := filepath.Join(c.dir.path, "password")
	if err := os.WriteFile(passwordFile, []byte(c.password+"\n"), 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(passwordFile)) }()
	if err := c.user.give(passwordFile); err != nil {
		return err
	}

	cmd := exec.Command(c.bin.program("initdb"), "-D", c.dir.data(), "--username="+superuser, "--auth=scram-sha-256",
		"--pwfile="+passwordFile, "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	cmd.Env = c.env
	if err := c.runToEnd(ctx, cmd); err != nil {
		return err
	}
	return writeSettings(filepath.Join(c.dir.data(), "postgresql.conf"), settings)
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
