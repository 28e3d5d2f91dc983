package migrate_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestBadDirectories(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"empty", nil, "the migrations directory has no migration: expected files such as 001_users.sql"},
		{"no migration in it", []string{"readme.sql", "x"}, "the migrations directory has no migration: expected files such as 001_users.sql"},
		{"a number twice", []string{"001_a.sql", "select 1", "01_b.sql", "select 1"}, "migration 01_b.sql: 001_a.sql has the number 1 already"},
		{"goose", []string{"001_a.sql", "-- +goose Up\nselect 1;\n -- +goose Down\nselect 2"}, `migration 001_a.sql, line 3: the line "-- +goose Down" begins the way down of goose`},
		{"goose with statements", []string{"001_a.sql", "-- +goose StatementBegin\nselect 1;\n--+goose down\n"}, `migration 001_a.sql, line 3: the line "--+goose down" begins`},
		{"dbmate", []string{"001_a.sql", "-- migrate:up\nselect 1;\n-- migrate:down transaction:false\n"}, `migration 001_a.sql, line 3: the line "-- migrate:down transaction:false" begins the way down of dbmate`},
		{"sql-migrate", []string{"001_a.sql", "-- +migrate Up\nselect 1;\n-- +migrate Down\n"}, `migration 001_a.sql, line 3: the line "-- +migrate Down" begins the way down of sql-migrate`},
		{"node-pg-migrate", []string{"001_a.sql", "select 1;\n-- Down Migration\n"}, `migration 001_a.sql, line 2: the line "-- Down Migration" begins`},
		{"a heading", []string{"001_a.sql", "select 1;\n---- DOWN ----\n"}, `migration 001_a.sql, line 2: the line "---- DOWN ----" begins the way down of another program`},
		{"golang-migrate", []string{"001_a.up.sql", "select 1", "001_a.down.sql", "select 2"}, `migration 001_a.down.sql: its name ends in .down.sql, as for golang-migrate`},
		{"no spaces in the separator", []string{"001_a.sql", "select 1;\n---- create above/drop below ----\n"}, `migration 001_a.sql, line 2: the line "---- create above/drop below ----" is not tern's separator`},
		{"three dashes", []string{"001_a.sql", "select 1;\n--- create above / drop below ---\n"}, `migration 001_a.sql, line 2: the line "--- create above / drop below ---" is not`},
		{"five dashes", []string{"001_a.sql", "select 1;\n----- create above / drop below -----\n"}, `migration 001_a.sql, line 2: the line "----- create above / drop below -----" is not`},
		{"a capital", []string{"001_a.sql", "select 1;\n---- Create above / drop below ----\n"}, `migration 001_a.sql, line 2: the line "---- Create above / drop below ----" is not`},
		{"half a separator", []string{"001_a.sql", "select 1;\n---- drop below ----\n"}, `migration 001_a.sql, line 2: the line "---- drop below ----" is not`},
		{"a byte order mark", []string{"001_a.sql", "\xef\xbb\xbfselect 1"}, `migration 001_a.sql, line 1: it begins with a byte order mark (U+FEFF)`},
		{"Latin-1", []string{"001_a.sql", "select 1;\nselect 'Z\xfcrich'"}, `migration 001_a.sql, line 2: byte 10 of the line, 0xfc, is not UTF-8`},
		{"a gap", []string{"001_a.sql", "select 1", "003_c.sql", "select 1"}, "migration 003_c.sql: no file has the number 2: expected numbers without a gap"},
		{"number 0", []string{"000_a.sql", "select 1", "001_b.sql", "select 1"}, "migration 000_a.sql: its number is 000: expected 1, 2, 3 and so on"},
		{"a date", []string{"20260101_a.sql", "select 1"}, "migration 20260101_a.sql: no file has the number 1: expected numbers without a gap"},
		{"a long date", []string{"20260101120000_a.sql", "select 1"}, "migration 20260101120000_a.sql: its number is 20260101120000: expected 1, 2, 3 and so on"},
		{
			"a broken template",
			[]string{"001_a.sql", "select 1", "002_b.sql", "\n select 1;\nselect {{.shard}"},
			`migration 002_b.sql, line 3: a file is a Go template, and this one fails: bad character U+007D '}'; write {{"{{"}} for two braces of SQL, as in '{{"{{"}}1,2},{3,4}}'`,
		},
		{"an array", []string{"001_a.sql", "create table a ();\n---- create above / drop below ----\n\nselect '{{1,2},{3,4}}'::int[]"}, "migration 001_a.sql, line 4: a file is a Go template, and this one fails: unexpected"},
		{"an unknown function", []string{"001_a.sql", "select\n'{{a}}'"}, `migration 001_a.sql, line 2: a file is a Go template, and this one fails: function "a" not defined; write {{"{{"}} for`},
		{"a template that fails", []string{"001_a.sql", `select 1; {{fail "not here"}}`}, "migration 001_a.sql, line 1: a file is a Go template, and this one fails: executing"},
		{"a broken shared template", []string{"001_a.sql", "select 1", "shared/b.sql", "--\n{{end}}"}, "migration shared/b.sql, line 2: a file is a Go template, and this one fails: unexpected {{end}}; write"},
		{"an unknown value", []string{"001_a.sql", "select {{.shard}},\n{{.host}}"}, "migration 001_a.sql, line 2: its template uses an unknown value, .host: expected {{.schema}} or {{.shard}}; write {{"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, err := shards.Config{
				Cluster: "test", Shards: 1, Epoch: shardtest.Epoch, Hosts: []shards.Host{{Name: "nowhere", DSN: "postgres://127.0.0.1:1/nowhere"}},
				Placement: []shards.Placement{{Shards: shards.SetOf(0), Host: "nowhere"}},
			}.Map()
			if err != nil {
				t.Fatal(err)
			}
			cfg := migrate.Config{Map: m, Files: files(test.files...)}
			for what, run := range map[string]func() error{
				"Up":     func() error { _, err := migrate.Up(t.Context(), cfg); return err },
				"Status": func() error { _, err := migrate.Status(t.Context(), cfg); return err },
			} {
				if err := run(); err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("%s: got error %v, want %s", what, err, test.want)
				}
			}
		})
	}
}

func TestFilesThatCannotBeRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		want string
	}{
		{"not written yet", "-- later\n", "migration 002_b.sql: it is not written yet: its up part has no SQL"},
		{"disable-tx with a quote that is left open", "---- tern: disable-tx ----\nselect 1; select 'a", "migration 002_b.sql: it is marked \"tern: disable-tx\", and cannot be split into statements: expected every quote"},
		{"disable-tx further down, with carriage returns", "\r\n-- x\r\n---- tern: disable-tx ----\r\nselect (1", "migration 002_b.sql: it is marked"},
		{"disable-tx with begin", "---- tern: disable-tx ----\nselect 1;\nbegin; select 2; commit", "migration 002_b.sql, line 3: a file marked \"tern: disable-tx\" is run statement by statement, each by itself: take this statement out of it; in: begin"},
		{"begin", "select 1;\nBegin;\nselect 1; commit", "migration 002_b.sql, line 2: a file is run in a transaction of its own: take this statement out of it; in: Begin"},
		{"start transaction", "start /**/ transaction", "migration 002_b.sql, line 1: a file is run"},
		{"commit", "\n\nselect 1; /* c */\n commit work", "migration 002_b.sql, line 4: a file is run"},
		{"rollback", "rollback", "migration 002_b.sql, line 1: a file is run"},
		{"prepare transaction", "prepare transaction 'x'", "migration 002_b.sql, line 1: a file is run"},
		{"copy", "create table c (a int);\ncopy c (a) from\n stdin;\n1\n\\.\n", "migration 002_b.sql, line 2: COPY FROM STDIN has no data to read here"},
		{"psql", "-- dump\n\\restrict k3y\nselect 1", `migration 002_b.sql, line 2: \restrict k3y is a command of psql`},
		{"psql at the end", "select '\\i' \\gset", `migration 002_b.sql, line 1: \gset is a command of psql`},
		{"zero byte", "select 1;\nselect '\x00'", "migration 002_b.sql, line 2: there is a zero byte in it"},
	}
	b := setup(t, 2, 1, "001_users.sql", users)
	b.up()
	for _, test := range tests {
		b.cfg.Files = files("001_users.sql", users, "002_b.sql", test.file, "003_c.sql", "create table c ()")
		_, partial := b.upFails()
		want := "0 of 2 shards done, 0 failed, 2 not attempted: nothing was run; " + test.want
		if !errors.Is(partial, migrate.ErrNothingRun) || !strings.HasPrefix(partial.Error(), want) {
			t.Errorf("%s: got %v, want %s", test.name, partial, want)
		}
		equal(t, "versions", fmt.Sprint(b.versions()), "[1 1]")
	}
	b.cfg.Files = files("001_users.sql", "commit; "+users)
	equal(t, "a file that is not pending", b.up().UpToDate.String(), "0-1")
	b.cfg.Files = files("001_users.sql", users, "002_b.sql", "savepoint s; create table x (); rollback to savepoint s; release s; prepare p as select 1; copy users to stdout")
	equal(t, "savepoints", b.up().Done.String(), "0-1")
}

func TestShardsThatCannotBeMigrated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		damage string
		is     error
		want   string
	}{
		{"not created", "drop schema shard_00005 cascade", migrate.ErrNotCreated, "shard 5 (shard_00005 on pg-b): the schema does not exist: run kiloshard create"},
		{"ahead", "update schema_version set version = 9", migrate.ErrAhead, "shard 5 (shard_00005 on pg-b): its version is above the newest file's: it is at version 9, the newest file is 2"},
		{"broken version table", "alter table schema_version rename version to v", nil, "shard 5 (shard_00005 on pg-b): its schema_version cannot be read: expected a plain table with a column version of type int4"},
		{"two rows in it", "insert into schema_version values (7)", nil, "shard 5 (shard_00005 on pg-b): its schema_version cannot be read: query returned more than one row (SQLSTATE P0003)"},
		{"empty version table", "delete from schema_version", nil, "shard 5 (shard_00005 on pg-b): its schema_version has no row: tern keeps one row in it"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 6, 2, "001_users.sql", users)
			b.up()
			b.exec(5, test.damage)
			b.cfg.Files = files("001_users.sql", users, "002_photos.sql", photos)
			report, partial := b.upFails()
			equal(t, "error", partial.Error(), "0 of 6 shards done, 1 failed, 5 not attempted: nothing was run; "+test.want)
			if test.is != nil && !errors.Is(partial, test.is) {
				t.Errorf("got %v, want %v", partial, test.is)
			}
			equal(t, "steps", len(report.Steps), 0)
			equal(t, "version of another", b.value(0, "select version from schema_version"), "1")

			_, err := migrate.Status(t.Context(), b.cfg)
			if errors.Is(test.is, migrate.ErrNotCreated) {
				equal(t, "status", err, nil)
			} else if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("status: got %v, want %s", err, test.want)
			}
			b.cfg.Shards = set(t, "0-4")
			equal(t, "without it", b.up().Done.String(), "0-4")
		})
	}
}

func TestHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 2, "001_users.sql", users)
	broken := b.m.Config()
	broken.Hosts = []shards.Host{b.m.Hosts()[0], {Name: "pg-b", DSN: "postgres://app:s3cret@127.0.0.1:1/app"}}
	m, err := broken.Map()
	if err != nil {
		t.Fatal(err)
	}
	whole := b.m
	b.cfg.Map = m
	_, partial := b.upFails()
	var host *shards.HostError
	if !errors.Is(partial, migrate.ErrNothingRun) || !errors.As(partial, &host) || host.Host != "pg-b" {
		t.Errorf("got %v, want that pg-b does not answer", partial)
	}
	if strings.Contains(partial.Error(), "s3cret") {
		t.Errorf("the error shows the password: %v", partial)
	}
	equal(t, "not attempted", partial.NotAttempted.String(), "0-5")

	status, err := migrate.Status(t.Context(), b.cfg)
	if err == nil || status.Hosts[1].Err == nil || fmt.Sprint(status.Hosts[0].Versions) != "[{0 1 0-2}]" {
		t.Errorf("status: got %v and %v", status, err)
	}
	b.cfg.Map = whole
	equal(t, "versions", fmt.Sprint(b.versions()), "[0 0 0 0 0 0]")
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	tests := []struct {
		name   string
		change func(*migrate.Config)
		want   string
	}{
		{"no map", func(c *migrate.Config) { c.Map = nil }, "migrate: Config.Map is nil: expected the map of the cluster"},
		{"no files", func(c *migrate.Config) { c.Files = nil }, "migrate: Config.Files is nil: expected the directory of migrations"},
		{"a version that is not there", func(c *migrate.Config) { c.To = 2 }, "version 2: the files go from 1 to 1"},
		{"a negative version", func(c *migrate.Config) { c.To = -1 }, "version -1: the files go from 1 to 1"},
		{"a shard that is not there", func(c *migrate.Config) { c.Shards = shards.SetOf(1, 7) }, "shard 7, the map has shards 0 to 1: no such shard"},
	}
	for _, test := range tests {
		cfg := b.cfg
		test.change(&cfg)
		if _, err := migrate.Up(t.Context(), cfg); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

func TestLoggerIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", "do $$ begin raise warning 'mind the gap'; end $$", "add_more.sql", "select 1")
	var log bytes.Buffer
	b.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b.up()
	for _, want := range []string{"mind the gap", "host=pg-a", "file=add_more.sql"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log.String())
		}
	}
}
