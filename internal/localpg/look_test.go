//go:build unix

package localpg_test

import (
	"errors"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// look runs look.sh in a directory where the only usual place is places, with nothing on the PATH but what it needs and
// the programs in path. It returns what it printed.
func look(t *testing.T, places, path, source string, env ...string) (stdout, stderr string, err error) {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("look.sh")
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(dir, "look.sh"), script, 0o755))
	binaries := filepath.Join(dir, "internal", "binaries")
	noError(t, os.MkdirAll(binaries, 0o755))
	noError(t, os.WriteFile(filepath.Join(binaries, "usual_places.txt"), []byte(places+"   # here\n/no/such/*/place # or there\n"), 0o644))
	tools := filepath.Join(dir, "tools")
	noError(t, os.Mkdir(tools, 0o755))
	for _, name := range []string{"sh", "dirname", "readlink", "sed", "id", "uname"} {
		program, err := osexec.LookPath(name)
		noError(t, err)
		noError(t, os.Symlink(program, filepath.Join(tools, name)))
	}
	cmd := osexec.Command(filepath.Join(tools, "sh"), filepath.Join(dir, "look.sh"), source)
	cmd.Env = append([]string{"PATH=" + tools + ":" + path, "HOME=" + dir}, env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// TestLook has look.sh say of server binaries what Start says of them.
func TestLook(t *testing.T) {
	t.Parallel()
	server := []string{"postgres", "initdb"}
	usable, old, client := programs(t, "15.3", server...), programs(t, "14.9", server...), programs(t, "17.1", "initdb")
	linked := t.TempDir()
	noError(t, os.Symlink(filepath.Join(usable, "postgres"), filepath.Join(linked, "postgres")))
	for _, test := range []struct {
		name, places, path, source string
		env                        []string
		want                       string
	}{
		{"in a usual place", filepath.Dir(usable) + "/*", "", "local", nil, "local"},
		{"on the PATH", old, usable, "", nil, "local"},
		{"by a link on the PATH", old, linked, "local", nil, "local"},
		{"too old", old, old, "local", nil, ""},
		{"client only", client, client, "local", nil, ""},
		{"none", "/none", "", "local", nil, ""},
		{"a DSN", usable, usable, "", []string{"KILOSHARD_POSTGRES_DSN=postgres://x"}, "dsn"},
		{"a DSN and a source", usable, "", "local", []string{"KILOSHARD_POSTGRES_DSN=postgres://x"}, "local"},
		{"Docker by its variable", usable, "", "docker", []string{"DOCKER_HOST=tcp://127.0.0.1:1"}, "docker"},
		{"before Docker", usable, "", "", []string{"DOCKER_HOST=tcp://127.0.0.1:1"}, "local"},
		{"after binaries", old, "", "", []string{"DOCKER_HOST=tcp://127.0.0.1:1"}, "docker"},
		{"no source", usable, "", "elsewhere", nil, "elsewhere"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, err := look(t, test.places, test.path, test.source, test.env...)
			if test.want != "" {
				noError(t, err)
				equal(t, "source", stdout, test.want+"\n")
				equal(t, "error", stderr, "")
				return
			}
			var exit *osexec.ExitError
			equal(t, "exit status", errors.As(err, &exit) && exit.ExitCode() == 1, true)
			equal(t, "output", stdout, "")
			_, unavailable := localpg.Start(t.Context(), localpg.Config{Source: localpg.Local, BinDir: t.TempDir()})
			looked, _, _ := strings.Cut(strings.TrimPrefix(unavailable.Error(), "start Postgres (source local): "), ", in ")
			want := localpg.ErrUnavailable.Error() + ": " + looked + ", on the PATH and in the usual places)" +
				"; install Debian's postgresql package, or Docker, or set KILOSHARD_POSTGRES_DSN\n"
			equal(t, "error", stderr, want)
		})
	}
}

func TestLookFindsDockerBySocket(t *testing.T) {
	t.Parallel()
	dir := publicDir(t)
	socket, err := net.Listen("unix", filepath.Join(dir, "docker.sock"))
	noError(t, err)
	t.Cleanup(func() { noError(t, socket.Close()) })
	stdout, _, err := look(t, "/none", "", "docker", "XDG_RUNTIME_DIR="+dir)
	noError(t, err)
	equal(t, "source", stdout, "docker\n")
}
