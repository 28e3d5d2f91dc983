//go:build unix

package localpg_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// needDocker skips a test where Docker or an image is missing, unless Docker is asked for or this is CI.
func needDocker(t *testing.T) {
	t.Helper()
	pgtest.NeedDocker(t, "postgres:17")
	if os.Getenv("CI") == "true" || os.Getenv("KILOSHARD_TEST_POSTGRES") == "docker" {
		return
	}
	if out, _ := osexec.Command("docker", "images", "--quiet", "testcontainers/ryuk").Output(); len(out) == 0 &&
		os.Getenv("TESTCONTAINERS_RYUK_DISABLED") != "true" {
		missing(t, "the image testcontainers/ryuk is needed, or TESTCONTAINERS_RYUK_DISABLED=true")
	}
}

// containers returns the containers that have the port of a DSN.
func containers(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	noError(t, err)
	out, err := osexec.Command("docker", "ps", "--all", "--quiet", "--filter", "publish="+u.Port()).Output()
	noError(t, err)
	return strings.TrimSpace(string(out))
}

func TestDocker(t *testing.T) {
	t.Parallel()
	needDocker(t)
	server := start(t, localpg.Config{Source: localpg.Docker, Settings: map[string]string{
		"wal_level": "logical", "cluster_name": "it's me",
	}})
	admin := server.DSN("postgres")
	equal(t, "source", server.Source(), localpg.Docker)
	equal(t, "wal_level", ask[string](t, admin, "show wal_level"), "logical")
	equal(t, "cluster_name", ask[string](t, admin, "show cluster_name"), "it's me")
	equal(t, "fsync, as the package comment says", ask[string](t, admin, "show fsync"), "off")
	equal(t, "collation", ask[string](t, admin, "select datcollate from pg_database where datname = 'template1'"), "C")
	id := containers(t, admin)
	equal(t, id+" named in "+server.Describe(), id != "" && strings.Contains(server.Describe(), id), true)

	dsn, err := server.CreateDatabase(t.Context(), "app")
	noError(t, err)
	exec(t, dsn, "create table t as select 42 as n; checkpoint")
	noError(t, server.Thaw(t.Context())) // it is not frozen
	noError(t, server.Freeze(t.Context()))
	noError(t, server.Thaw(t.Context()))
	equal(t, "row after a thaw", ask[int](t, dsn, "select n from t"), 42)
	noError(t, server.Kill(t.Context()))
	noError(t, server.Kill(t.Context()))
	eventually(t, "port free", func() bool { return !listening(addressOf(t, dsn)) })
	noError(t, server.Restart(t.Context()))
	equal(t, "row", ask[int](t, dsn, "select n from t"), 42)
	equal(t, "recovered", strings.Contains(server.Log(t.Context()), "was not properly shut down"), true)
	noError(t, server.Restart(t.Context()))
	equal(t, "row", ask[int](t, dsn, "select n from t"), 42)

	noError(t, server.Stop(t.Context()))
	equal(t, "containers", containers(t, admin), "")
}

// TestDockerDir has a container keep its data in a directory, which outlives a kill and not the server.
func TestDockerDir(t *testing.T) {
	t.Parallel()
	needDocker(t)
	dir := t.TempDir()
	if os.Getuid() != 0 {
		_, err := localpg.Start(t.Context(), localpg.Config{Source: localpg.Docker, Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "only root may remove") {
			t.Fatal(err)
		}
		return
	}
	server := start(t, localpg.Config{Source: localpg.Docker, Dir: dir})
	exec(t, server.DSN("postgres"), "create table t as select 42 as n; checkpoint")
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "PG_VERSION"))
	noError(t, err)
	equal(t, "data directories", len(found), 1)
	noError(t, server.Kill(t.Context()))
	noError(t, server.Restart(t.Context()))
	equal(t, "row", ask[int](t, server.DSN("postgres"), "select n from t"), 42)
	noError(t, server.Stop(t.Context()))
	left, err := os.ReadDir(dir)
	noError(t, err)
	equal(t, "directories left", len(left), 0)
}

func TestDockerThatGivesUp(t *testing.T) {
	t.Parallel()
	needDocker(t)
	_, err := localpg.Start(t.Context(), localpg.Config{
		Source: localpg.Docker, Settings: map[string]string{"shared_buffers": "no size"},
	})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers": "no size"`) {
		t.Fatal(err)
	}
	equal(t, "unavailable", errors.Is(err, localpg.ErrUnavailable), false)
}

func TestDockerGivenUp(t *testing.T) {
	t.Parallel()
	needDocker(t)
	name := fmt.Sprintf("given-up-%d", os.Getpid()) // the same test may run in another process
	created := func() bool {
		out, err := osexec.Command("docker", "ps", "--all", "--no-trunc", "--format", "{{.Command}}").Output()
		noError(t, err)
		return strings.Contains(string(out), "cluster_name="+name)
	}
	eventually(t, "it is given up in time", func() bool {
		err := giveUp(t, localpg.Config{Source: localpg.Docker, Settings: map[string]string{"cluster_name": name}}, created)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return err != nil
	})
	equal(t, "container left", created(), false)
}

func TestDockerKeep(t *testing.T) {
	t.Parallel()
	needDocker(t)
	server := start(t, localpg.Config{Source: localpg.Docker, Keep: true})
	dsn := server.DSN("postgres")
	id := containers(t, dsn)
	t.Cleanup(func() { noError(t, osexec.Command("docker", "rm", "--force", "--volumes", id).Run()) })
	noError(t, server.Stop(context.Background()))
	equal(t, "answer", ask[int](t, dsn, "select 1"), 1)
	labels, err := osexec.Command("docker", "inspect", "--format", "{{json .Config.Labels}}", id).Output()
	noError(t, err)
	equal(t, "the reaper's labels in "+string(labels), strings.Contains(string(labels), "org.testcontainers"), false)
}
