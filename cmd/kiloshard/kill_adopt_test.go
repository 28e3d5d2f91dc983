package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// adoptBundle is a database that is adopted by commands which are killed.
type adoptBundle struct {
	t    *testing.T
	dir  string
	dsn  string
	conn *pgx.Conn
	all  int // how many shards there are
}

// TestKilledAdopt kills adopt views, and then adopt back, with SIGKILL once they are done with some shards. Another run has to complete the work,
// and in the end the database is as it was.
func TestKilledAdopt(t *testing.T) {
	t.Parallel()
	b := newAdoption(t, 128)
	b.run("create")
	before := b.dump()
	b.killAt(func() bool { return b.with("v") > 0 }, "views")
	b.run("adopt", "views")
	if got := b.with("v"); got != b.all {
		t.Errorf("%d shards have views, expected %d", got, b.all)
	}
	b.killAt(func() bool { return b.with("v") < b.all }, "back")
	b.run("adopt", "back")
	if after := b.dump(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// TestKilledAdoptTables kills adopt tables, and then adopt back, once they are done with some shards, and adopt finish once it has begun. Another run has to
// complete the work, and no row is lost.
func TestKilledAdoptTables(t *testing.T) {
	t.Parallel()
	b := newAdoption(t, 32)
	b.write("adopt.yaml", strings.NewReplacer(`is: chained, through: "photo_id->public.photos", keyless: left`, "is: left").Replace(topic(t, "adopt")[""][0]))
	b.run("create")
	before, rows := b.dump(), b.rows("public")
	some := func() bool { n := b.with("r"); return 0 < n && n < b.all }
	b.run("adopt", "views")
	b.killAt(some, "tables", "--quiet-for", "0s")
	b.run("adopt", "tables", "--quiet-for", "0s")
	if got := b.with("r"); got != b.all {
		t.Errorf("%d shards have tables, expected %d", got, b.all)
	}
	b.killAt(some, "back")
	b.run("adopt", "back")
	if after := b.dump(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	if after := b.rows("public"); after != rows {
		t.Errorf("the old tables have %s, expected %s", after, rows)
	}
	b.run("adopt", "views")
	b.run("adopt", "tables", "--quiet-for", "0s")
	b.killAt(func() bool { return b.value("select gate from kiloshard_adopt.adoption") == "finished" }, "finish", "--yes", "--keep-for", "1h")
	if out, err := b.command("adopt", "back").CombinedOutput(); err == nil || !strings.Contains(string(out), "this adoption is finished") {
		t.Errorf("back after the beginning of finish: %v\n%s", err, out)
	}
	b.run("adopt", "finish", "--yes", "--keep-for", "0s")
	var schemas []string
	for n := range b.all {
		schemas = append(schemas, fmt.Sprintf("shard_%05d", n))
	}
	if after := b.rows(schemas...); after != rows {
		t.Errorf("the shards have %s, expected %s", after, rows)
	}
	b.run("verify")
}

// newAdoption returns the database of the guide, and its files for so many shards.
func newAdoption(t *testing.T, shards int) *adoptBundle {
	t.Helper()
	b := &adoptBundle{t: t, dir: t.TempDir(), dsn: shardtest.Hosts(t, 1)[0].ConnString(), all: shards}
	conn, err := pgx.Connect(t.Context(), b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	b.conn = conn
	topic := topic(t, "adopt")
	b.write("kiloshard.yaml", strings.NewReplacer("shards: 64", fmt.Sprint("shards: ", shards), "0-63", fmt.Sprint("0-", shards-1)).Replace(topic[""][1]))
	b.write("adopt.yaml", topic[""][0])
	if _, err := conn.Exec(t.Context(), adoptService, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *adoptBundle) value(query string) (text string) {
	b.t.Helper()
	if err := b.conn.QueryRow(b.t.Context(), query).Scan(&text); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return text
}

// rows returns how many rows the sharded tables of schemas have, and the sums of their hashes.
func (b *adoptBundle) rows(schemas ...string) string {
	b.t.Helper()
	var parts []string
	for _, table := range []string{"users", "albums", "photos", "follows"} {
		for _, schema := range schemas {
			parts = append(parts, fmt.Sprintf("select '%s' as what, t::text as r from %s.%[1]s t", table, schema))
		}
	}
	return b.value("select string_agg(concat(what, ' ', n, ' ', hash), ', ' order by what) from (select what, count(*) as n, sum(hashtextextended(r, 0)) as hash from (" +
		strings.Join(parts, " union all ") + ") all_rows group by what) sums")
}

func (b *adoptBundle) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *adoptBundle) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.t.Context(), "kiloshard", args...)
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), "OLD_DSN="+b.dsn)
	return cmd
}

func (b *adoptBundle) run(args ...string) {
	b.t.Helper()
	if out, err := b.command(args...).CombinedOutput(); err != nil {
		b.t.Fatalf("kiloshard %v: %v\n%s", args, err, out)
	}
}

// with returns how many shards have the users as a view, 'v', or as a table, 'r'. Each shard has all of its tables in the same form.
func (b *adoptBundle) with(kind string) int {
	b.t.Helper()
	const query = `select count(*) filter (where 'users' = any (names)), count(distinct names) from (
		select array_agg(c.relname order by c.relname) as names from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind::text = $1 and n.nspname ~ '^shard_' and c.relname !~ '^(kiloshard_|schema_version)' group by n.oid) s`
	var count, forms int
	if err := b.conn.QueryRow(b.t.Context(), query, kind).Scan(&count, &forms); err != nil {
		b.t.Fatal(err)
	}
	if forms > 1 {
		b.t.Error("some shards have a part of their tables")
	}
	return count
}

// killAt starts a command of adopt, and kills it at a moment.
func (b *adoptBundle) killAt(isMoment func() bool, args ...string) {
	b.t.Helper()
	cmd := b.command(append([]string{"adopt", args[0], "--parallel", "1"}, args[1:]...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !isMoment() {
		select {
		case err := <-ended:
			b.t.Fatalf("adopt %v ended before it was killed: %v\n%s", args, err, &out)
		default:
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		b.t.Error(err)
	}
	if err := <-ended; err == nil {
		b.t.Errorf("adopt %v ended before it was killed", args)
	}
	// The lock is free when the server has ended the sessions of the dead.
	for left := 1; left > 0; {
		const query = `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'kiloshard adopt'`
		if err := b.conn.QueryRow(b.t.Context(), query).Scan(&left); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *adoptBundle) dump() string {
	b.t.Helper()
	out, err := exec.CommandContext(b.t.Context(), "pg_dump", "--schema-only", "-d", b.dsn).Output()
	if err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, `\restrict`) && !strings.HasPrefix(line, `\unrestrict`) { // a new word in each dump
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
