package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// dump copies a database into another one with pg_dump and psql, which have to be on the PATH.
func dump(ctx context.Context, from, to shards.Host) error {
	out, err := program(ctx, from, "pg_dump")
	if err != nil {
		return err
	}
	in, err := program(ctx, to, "psql", "--no-psqlrc", "--quiet", "--output="+os.DevNull, "--set=ON_ERROR_STOP=1")
	if err != nil {
		return err
	}
	var said [2]bytes.Buffer
	out.Stderr, in.Stderr = &said[0], &said[1]
	if in.Stdin, err = out.StdoutPipe(); err != nil {
		return err
	}
	if err := out.Start(); err != nil {
		return err
	}
	errIn := in.Run()
	if errIn != nil {
		_ = out.Process.Kill() // it would wait for psql to read
	}
	errOut := out.Wait()
	if errIn != nil || errOut != nil {
		return fmt.Errorf("pg_dump | psql: %w: %s %s", errors.Join(errIn, errOut), &said[0], &said[1])
	}
	return nil
}

// program returns a command of Postgres that connects to a host. The password is in its environment alone.
func program(ctx context.Context, host shards.Host, name string, args ...string) (*exec.Cmd, error) {
	cfg, err := pgx.ParseConfig(host.ConnString())
	if err != nil {
		return nil, shards.ErrBadDSN
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "PGHOST="+cfg.Host, "PGPORT="+strconv.Itoa(int(cfg.Port)), "PGUSER="+cfg.User, "PGPASSWORD="+cfg.Password, "PGDATABASE="+cfg.Database)
	return cmd, nil
}
