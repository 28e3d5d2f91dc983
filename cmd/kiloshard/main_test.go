package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/lab"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// testMain has shardtest run the tests, and testscript the command.
type testMain struct{ *testing.M }

func (m testMain) Run() int {
	_ = os.Setenv(cli.StoreVariable, "1m") // however busy the machine is; it fails only for a name that is none
	return shardtest.Run(m.M)
}

func TestMain(m *testing.M) {
	serveEtcd()
	testscript.Main(testMain{m}, map[string]func(){"kiloshard": main, "kiloshard-lab": func() { program.Main(lab.Root) }})
}

// run runs one command line of kiloshard and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return program.Run(ctx, cli.New(stdin, stdout, stderr, os.LookupEnv), program.Kiloshard, args)
}

// TestScripts runs testdata/script. Each script has two empty hosts of its own, whose DSNs are in
// PG_A_DSN and PG_B_DSN, and PG_B_WRONG_DSN is the second with a wrong password. PG_MAP_DSN is a database for the map.
// A script that names none of them has none.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	pages, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			hosts := scriptHosts(t, file)
			tmp := enterable(t)
			testscript.Run(t, testscript.Params{
				Files:               []string{file},
				RequireExplicitExec: true,
				Condition: func(name string) (bool, error) {
					if name != "full" {
						return false, fmt.Errorf("unknown condition %s: expected full", name)
					}
					return pgtest.Full(), nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"exits": exits, "psql": psql, "etcd": (&etcdServer{t: t}).command, "pair": (&pair{t: t}).command,
					"silent": (&silent{t: t}).command, "quotes": quotes, "wrongly": wrongly,
				},
				Setup: func(env *testscript.Env) error {
					env.Setenv("KILOSHARD_STORE_TIMEOUT", "1m") // however busy the machine is
					env.Setenv("TMPDIR", tmp)
					env.Setenv("PAGES", pages)
					env.Setenv("COLUMNS", "1000")                                // a line is as long as it is, unless a script says otherwise
					env.Setenv("PG_ROLE", fmt.Sprintf("script_%d", os.Getpid())) // for a script to make
					for i, host := range hosts {
						env.Setenv([]string{"PG_A_DSN", "PG_B_DSN", "PG_MAP_DSN"}[i], host.ConnString())
					}
					if len(hosts) > 0 {
						wrong, err := url.Parse(hosts[1].ConnString())
						if err != nil {
							return err
						}
						wrong.User = url.UserPassword(wrong.User.Username(), "s3cr3t-pa55")
						env.Setenv("PG_B_WRONG_DSN", wrong.String())
						wrong.Path = "/control"
						env.Setenv("PG_MAP_WRONG_DSN", wrong.String())
					}
					for _, name := range []string{"KILOSHARD_POSTGRES_DSN", "KILOSHARD_POSTGRES_IMAGE"} {
						env.Setenv(name, os.Getenv(name))
					}
					return nil
				},
			})
		})
	}
}

// scriptHosts returns the databases that a script names.
func scriptHosts(t *testing.T, file string) []shards.Host {
	t.Helper()
	switch text := readPage(t, file); {
	case strings.Contains(text, "PG_MAP_DSN"):
		return shardtest.Hosts(t, 3)
	case regexp.MustCompile(`PG_(A|B|B_WRONG|MAP_WRONG)_DSN`).MatchString(text):
		return shardtest.Hosts(t, 2)
	}
	return nil
}

// enterable returns a directory for a script's temporary files: servers of root run as a user who cannot enter the script's own.
func enterable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "script-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// exits runs a program and checks its exit code: exits 2 kiloshard create
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, expected %d", got, want)
	}
}
