package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/shards"
)

// Command is a program that prints the password for a connection that is about to be made, such as a token of a cloud's
// IAM. It runs for each connection, without a shell. Its output is used for nothing else.
//
// It inherits this process's environment; KILOSHARD_HOST has the host's name, and PGHOST, PGPORT, PGUSER and PGDATABASE
// say where the connection goes. For a DSN with several addresses it runs for each one that accepts a connection.
type Command struct {
	Words []string      // the program and its arguments
	Dir   string        // the working directory, also for a relative path of the program. Defaults to the present directory
	Limit time.Duration // how long it may take; then it is killed, on Unix with its children. Defaults to 30 s
}

// maxOutput is the limit of a password, in bytes. A token of IAM has some hundreds to thousands.
const maxOutput = 64 << 10

// Credentials runs the command. It is a [shards.CredentialsFunc]. The user is the DSN's, and the password is the one line
// that the program prints. An error names the program and says how it ended, but shows none of its output.
func (c Command) Credentials(ctx context.Context, host shards.Host) (shards.Credentials, error) {
	if len(c.Words) == 0 {
		return shards.Credentials{}, errors.New("password_command: no program")
	}
	config, err := parse(host)
	if err != nil {
		return shards.Credentials{}, err
	}
	limit := c.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	to := config.ConnConfig
	out := &output{}
	cmd := exec.CommandContext(ctx, c.Words[0], c.Words[1:]...)
	cmd.Dir, cmd.Stdout = c.Dir, out
	cmd.Env = append(cmd.Environ(), "KILOSHARD_HOST="+host.Name,
		"PGHOST="+to.Host, fmt.Sprintf("PGPORT=%d", to.Port), "PGUSER="+to.User, "PGDATABASE="+to.Database)
	cmd.WaitDelay = time.Second // for children that keep its output open
	killAll(cmd)
	if err := cmd.Run(); err != nil {
		return shards.Credentials{}, c.failed(ctx, limit, err)
	}
	password, err := out.line()
	if err != nil {
		return shards.Credentials{}, fmt.Errorf("password_command: %s %w", c.name(), err)
	}
	return shards.Credentials{Password: password}, nil
}

// name is the program's name, without the arguments: people put secrets there.
func (c Command) name() string { return filepath.Base(c.Words[0]) }

func (c Command) failed(ctx context.Context, limit time.Duration, err error) error {
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("password_command: %s has printed no password within %s: %w", c.name(), limit, ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		// Not the ExitError itself, which may hold the program's standard error.
		return fmt.Errorf("password_command: %s ended with %s; what it printed is not shown, for it may hold a password: run it by hand to see it", c.name(), exit.ProcessState)
	}
	return fmt.Errorf("password_command: %w", err)
}

// output keeps what a program prints, up to a limit.
type output struct {
	text    bytes.Buffer
	tooLong bool
}

func (o *output) Write(p []byte) (int, error) {
	if o.text.Len()+len(p) > maxOutput {
		o.tooLong = true
		return len(p), nil
	}
	return o.text.Write(p)
}

func (o *output) line() (string, error) {
	line := strings.TrimSuffix(strings.TrimSuffix(o.text.String(), "\n"), "\r")
	switch {
	case o.tooLong:
		return "", fmt.Errorf("printed more than %d bytes; expected one line with the password", maxOutput)
	case line == "":
		return "", errors.New("printed nothing; expected one line with the password")
	case strings.ContainsAny(line, "\r\n\x00") || !utf8.ValidString(line):
		return "", errors.New("printed more than one line of text; expected the password alone")
	}
	return line, nil
}
