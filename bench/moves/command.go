package moves

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command runs kiloshard on the cluster, as a process of its own. It calls told with each line that it writes to standard error, without
// the name of the shard, such as "copy: copied".
func (c *cluster) command(ctx context.Context, told func(what string), args ...string) error {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Env = append(os.Environ(), "KILOSHARD_CONFIG="+filepath.Join(c.dir, configFile))
	for variable, dsn := range c.dsns {
		cmd.Env = append(cmd.Env, variable+"="+dsn)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	lines, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	last := ""
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		last = scanner.Text()
		if _, what, ok := strings.Cut(last, ", "); ok {
			told(what)
		}
	}
	if err := cmd.Wait(); err != nil {
		return errors.Join(fmt.Errorf("kiloshard %s: %w: %s", args[0], err, last), ctx.Err())
	}
	return nil
}
