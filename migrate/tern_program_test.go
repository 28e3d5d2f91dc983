package migrate_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// ternProgram is the official tern program.
type ternProgram struct{ path string }

// buildTern builds it from the source that go.mod names, with the modules that its own go.mod and go.sum name.
func buildTern(t *testing.T) ternProgram {
	t.Helper()
	source, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/jackc/tern/v2").Output()
	if err != nil || len(bytes.TrimSpace(source)) == 0 {
		missing(t, fmt.Sprintf("the source of tern is needed (%v): install Go and run go mod download", err))
	}
	program := filepath.Join(t.TempDir(), "tern")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir = string(bytes.TrimSpace(source))
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("tern's modules are needed (%v): run go install github.com/jackc/tern/v2@v2.4.2 once where there is a network: %s", err, out))
	}
	return ternProgram{program}
}

// missing skips a test for want of something, or fails it in CI, where nothing may be wanting.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// setupDirectory is setup with the files in a directory, for tern to read.
func setupDirectory(t *testing.T, count, hosts int, namesAndContents ...string) (*bundle, string) {
	t.Helper()
	b := setup(t, count, hosts)
	directory := t.TempDir()
	for name, file := range files(namesAndContents...) {
		if err := os.WriteFile(filepath.Join(directory, name), file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.cfg.Files = os.DirFS(directory)
	return b, directory
}

// on returns a run of the program that is not started yet, pointed at one shard. The password goes by a file that only
// this user can read.
func (p ternProgram) on(b *bundle, n shards.Number, directory string, args ...string) *exec.Cmd {
	b.t.Helper()
	config := filepath.Join(b.t.TempDir(), "tern.conf")
	text := fmt.Sprintf("[database]\nconn_string = %s\nversion_table = %s.schema_version\n", b.m.Host(n).ConnString(), b.m.Schema(n))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), p.path, append(args, "--config", config, "--migrations", directory)...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c search_path="+b.m.Schema(n))
	return cmd
}

// run runs the program and returns what it printed.
func (p ternProgram) run(b *bundle, n shards.Number, directory string, args ...string) string {
	b.t.Helper()
	out, err := p.on(b, n, directory, args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("tern %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestTernProgram(t *testing.T) {
	t.Parallel()
	program := buildTern(t)
	t.Run("agrees", func(t *testing.T) { t.Parallel(); ternProgramAgrees(t, program) })
	t.Run("waits for our run", func(t *testing.T) { t.Parallel(); ternProgramWaits(t, program) })
	t.Run("keeps our run out", func(t *testing.T) { t.Parallel(); ternProgramKeepsUsOut(t, program) })
	t.Run("is waited for", func(t *testing.T) { t.Parallel(); ternProgramIsWaitedFor(t, program) })
}

func ternProgramAgrees(t *testing.T, program ternProgram) {
	b, directory := setupDirectory(t, 6, 2, "001_users.sql", users, "002_photos.sql", photos,
		"003_more.sql", "create table more ();\n---- create above / drop below ----\ndrop table more;\n")
	b.cfg.To = 1
	b.up()
	contains(t, "status at first", program.run(b, 3, directory, "status"), "migration(s) pending", "1 of 3")

	contains(t, "tern migrate", program.run(b, 3, directory, "migrate", "--destination", "2"), "executing 002_photos.sql up")
	equal(t, "versions", fmt.Sprint(b.versions()), "[1 1 1 2 1 1]")
	equal(t, "its tables", b.value(3, "select string_agg(tablename, ' ' order by tablename) from pg_tables where schemaname ~ 'shard_|public' and tablename <> 'schema_version'"),
		"photos users users users")

	b.cfg.To = 0
	equal(t, "steps", fmt.Sprint(b.up().Steps), "[{1 3 0-2,4-5} {2 3 3}]")
	contains(t, "status at last", program.run(b, 3, directory, "status"), "up to date", "3 of 3")
	equal(t, "nothing to do", program.run(b, 3, directory, "migrate"), "")

	contains(t, "back", program.run(b, 3, directory, "migrate", "--destination", "-1"), "executing 003_more.sql down")
	equal(t, "versions", fmt.Sprint(b.versions()), "[3 3 3 2 3 3]")
	equal(t, "steps", fmt.Sprint(b.up().Steps), "[{2 3 3}]")
}

// The files of these tests do not bear being run twice, nor in another order.
var logged = []string{
	"001_log.sql", "create table log (file int); insert into log values (1)",
	"002_log.sql", "insert into log values (2); {{.wait}}",
	"003_log.sql", "alter table log rename to logged; insert into logged values (3)",
}

const loggedFiles = "select string_agg(file::text, ',' order by ctid) from logged"

func ternProgramWaits(t *testing.T, program ternProgram) {
	b, directory := setupDirectory(t, 4, 1, withWait("")...)
	tern := program.on(b, 3, directory, "migrate")
	var out bytes.Buffer
	tern.Stdout, tern.Stderr = &out, &out
	b.cfg.PerHost = 1
	b.cfg.Progress = observer(func(n shards.Number) {
		if n != 0 { // our run has three more shards to do, that of tern among them
			return
		}
		if err := tern.Start(); err != nil {
			t.Error(err)
			return
		}
		waitFor(t, b, `select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and objsubid = 1 and not granted
			and (classid::bigint << 32) + objid::bigint = 9628173550095224
			and database = (select oid from pg_database where datname = current_database()))`)
	})
	equal(t, "done", b.up().Done.String(), "0-3")
	if err := tern.Wait(); err != nil {
		t.Errorf("tern: %v: %s", err, out.String())
	}
	equal(t, "what tern ran", out.String(), "")
	for n := range b.m.All().All() {
		equal(t, "files run", b.value(n, loggedFiles), "1,2,3")
	}
}

// withWait returns the logged files with a statement in the second one.
func withWait(statement string) []string {
	names := append([]string(nil), logged...)
	for i := range names {
		names[i] = strings.ReplaceAll(names[i], "{{.wait}}", statement)
	}
	return names
}

// startInTheMiddle starts tern on shard 3, and returns when it is in the middle of the second file, where it stays until
// the returned function is called. That one returns when tern has ended.
func startInTheMiddle(t *testing.T, program ternProgram, b *bundle, directory string) func() {
	t.Helper()
	holder := b.connect(b.m.Host(3))
	if _, err := holder.Exec(t.Context(), "select pg_advisory_lock(42)"); err != nil {
		t.Fatal(err)
	}
	tern := program.on(b, 3, directory, "migrate")
	var out bytes.Buffer
	tern.Stdout, tern.Stderr = &out, &out
	if err := tern.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, b, `select exists (select from pg_locks where locktype = 'advisory' and objid = 42 and not granted
		and database = (select oid from pg_database where datname = current_database()))`)
	return func() {
		if _, err := holder.Exec(t.Context(), "select pg_advisory_unlock(42)"); err != nil {
			t.Error(err)
		}
		if err := tern.Wait(); err != nil {
			t.Errorf("tern: %v: %s", err, out.String())
		}
		contains(t, "what tern ran", out.String(), "executing 001_log.sql up", "executing 002_log.sql up", "executing 003_log.sql up")
	}
}

func ternProgramKeepsUsOut(t *testing.T, program ternProgram) {
	b, directory := setupDirectory(t, 5, 1, withWait("select pg_advisory_xact_lock_shared(42);")...)
	goOn := startInTheMiddle(t, program, b, directory)
	b.cfg.TernWait = 100 * time.Millisecond
	_, partial := b.upFails()
	if !errors.Is(partial, migrate.ErrTernAtWork) || !errors.Is(partial, migrate.ErrNothingRun) {
		t.Errorf("got %v, want ErrTernAtWork", partial)
	}
	equal(t, "versions meanwhile", fmt.Sprint(b.versions()), "[0 0 0 1 0]")
	goOn()
	report := b.up()
	equal(t, "done", report.Done.String(), "0-2,4")
	equal(t, "up to date", report.UpToDate.String(), "3")
	for n := range b.m.All().All() {
		equal(t, "files run", b.value(n, loggedFiles), "1,2,3")
	}
}

// Our run begins while tern is at work, so that its first look at the shard is out of date in the end.
func ternProgramIsWaitedFor(t *testing.T, program ternProgram) {
	b, directory := setupDirectory(t, 5, 1, withWait("select pg_advisory_xact_lock_shared(42);")...)
	goOn := startInTheMiddle(t, program, b, directory)
	b.cfg.TernWait = time.Minute
	var report migrate.Report
	ended := make(chan error, 1)
	go func() {
		var err error
		report, err = migrate.Up(t.Context(), b.cfg)
		ended <- err
	}()
	waitFor(t, b, `select exists (select from pg_stat_activity where application_name = 'kiloshard migrate' and query ~ 'pg_try_advisory_lock_shared'
		and datname = current_database())`)
	goOn()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	equal(t, "done", report.Done.String(), "0-4")
	equal(t, "steps", fmt.Sprint(report.Steps), "[{0 3 0-2,4}]")
	for n := range b.m.All().All() {
		equal(t, "files run", b.value(n, loggedFiles), "1,2,3")
	}
}

func contains(t *testing.T, what, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q in it", what, text, want)
		}
	}
}
