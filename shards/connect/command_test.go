//go:build unix

package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/connect"
)

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestCommand(t *testing.T) {
	t.Parallel()
	dsn := role(t, server, "by_command")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "password"), sentinel+"\n")
	seen := filepath.Join(dir, "seen")
	// What it prints on standard error is nobody's business, and neither are its arguments; so it has the process list
	// written down while it runs.
	c := connect.Command{Dir: dir, Words: shell(
		`echo "$KILOSHARD_HOST $PGHOST $PGPORT $PGUSER $PGDATABASE" > seen; cat password >&2; cat /proc/[0-9]*/cmdline > ps 2>&-; cat password`)}
	conn, err := connect.Open(t.Context(), hostOf(dsn("", "", "sslmode=disable")).WithCredentials(c.Credentials), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	u, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		t.Fatal("bad DSN")
	}
	got, err := os.ReadFile(seen)
	if want := fmt.Sprintf("pg-a %s %s by_command postgres\n", u.Hostname(), u.Port()); err != nil || string(got) != want {
		t.Errorf("it found %q, %v; expected %q", got, err, want)
	}
	list, err := os.ReadFile(filepath.Join(dir, "ps"))
	if err != nil || strings.Contains(string(list), sentinel) {
		t.Errorf("the password is in the process list: %v", err)
	}
	if runtime.GOOS == "linux" && !strings.Contains(string(list), "KILOSHARD_HOST") {
		t.Error("the process list does not have the command itself")
	}
}

func TestCommandFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		words []string
		want  []string
	}{
		{"exit status", shell("echo " + sentinel + "; echo " + sentinel + " >&2; exit 3"), []string{"no credentials: password_command: sh ended with exit status 3", "run it by hand"}},
		{"killed", shell("kill -9 $$"), []string{"sh ended with signal: killed"}},
		{"no such program", []string{"/nowhere/token", sentinel}, []string{"password_command: ", "/nowhere/token: no such file"}},
		{"nothing", shell("exit 0"), []string{"sh printed nothing; expected one line with the password"}},
		{"two lines", shell("echo " + sentinel + "; echo more"), []string{"more than one line of text"}},
		{"no text", shell(`printf '\377\n'`), []string{"more than one line of text"}},
		{"too long", shell("head -c 100000 /dev/zero | tr '\\0' x"), []string{"printed more than 65536 bytes"}},
		{"no words", nil, []string{"no program"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			host := hostOf(server.DSN("postgres")).WithCredentials(connect.Command{Words: test.words}.Credentials)
			_, err := connect.Open(t.Context(), host, nil)
			var e *connect.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, expected a connect.Error", err)
			}
			checkText(t, fmt.Sprintf("%v %+v %#v", err, err, e), test.want...)
		})
	}
}

// A command that hangs is killed with what it has started, and ends early with the caller's context.
func TestCommandHangs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		limit time.Duration
		want  string
	}{
		{"its limit", 300 * time.Millisecond, "sh has printed no password within 300ms"},
		{"the caller gives up", time.Hour, "context canceled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var text []byte
			for try := 0; text == nil; try++ { // on a busy machine it may be killed before it has started anything
				if try == 200 {
					t.Fatal("it was killed each time before it had started anything")
				}
				text = hang(t, server.DSN("postgres"), test.limit, test.want)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(5 * time.Minute)
			for running(pid) {
				if time.Now().After(deadline) {
					t.Fatal("what it had started is still running")
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
}

// hang runs a command that starts a process and hangs, until its limit or, where that is an hour, until the caller gives
// up. It returns the number of the process, nil if none was started.
func hang(t *testing.T, dsn string, limit time.Duration, want string) []byte {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if limit == time.Hour {
		go func() {
			for !exists(filepath.Join(dir, "pid")) {
				time.Sleep(5 * time.Millisecond)
			}
			cancel()
		}()
	}
	c := connect.Command{Words: shell("sleep 1000 & echo $! > tmp; mv tmp pid; wait"), Dir: dir, Limit: limit}
	_, err := c.Credentials(ctx, hostOf(dsn))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return nil
	}
	return text
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// running tells whether a process runs; one that has ended and that nobody has waited for does not.
func running(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
