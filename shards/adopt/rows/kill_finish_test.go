package rows_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// TestKilledFinish kills the end of an adoption between its steps while clients write. There is no way back from the first one on, and another run goes on.
// Each shard has what clients have committed, and nothing of the adoption is left.
func TestKilledFinish(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	all := b.write(3)
	if err := b.do("tables", nil); err != nil {
		t.Fatal(err)
	}
	between := func() {
		t.Helper()
		wrong := (*rows.CheckError)(nil)
		for _, what := range []string{"back", "tables"} {
			if err := b.do(what, nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "this adoption is finished") {
				t.Errorf("%s: got %v", what, err)
			}
		}
		all.await(t, 20)
	}
	for _, locked := range []string{
		"shard_00000.albums, shard_00001.albums, shard_00002.albums, shard_00003.albums", // before the first mirror ends
		"shard_00002.photos",         // between two shards
		"public.moves",               // between two old tables
		"kiloshard_adopt.remembered", // after the last one
	} {
		b.killedBehind("finish", locked)
		between()
	}
	if !b.killed("finish", string(rows.Ended)+" 1", 0) {
		t.Error("finish ended before its mirrors did")
	}
	between()
	if !b.killed("finish", string(dropping)+" 1", 0) {
		t.Error("finish did not drop the old tables")
	}
	between()
	if found := b.run("select count(*) from pg_class c where relnamespace = 'kiloshard_adopt_old'::regnamespace and relkind = 'r'"); found[0] != "6" {
		t.Errorf("%s old tables are kept, expected 6", found[0])
	}
	b.killedBehind("finish", "kiloshard_adopt_old.tags")
	if !b.killed("finish", string(rows.Dropped)+" 1", 0) {
		t.Error("finish did not drop the old tables")
	}
	between()
	cfg := b.config()
	cfg.Drop = func([]string) error { return nil }
	if _, err := rows.Finish(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Finish(t.Context(), cfg); !errors.Is(err, ledger.ErrNone) {
		t.Errorf("got %v", err)
	}
	all.await(t, 20)
	all.end()
	all.checkHistories(t, func(c *client) []string { return []string{b.m.Schema(c.shards)} })
	b.checkIDs()
	for what, query := range map[string]string{
		"schemas":   "select nspname from pg_namespace where nspname ~ 'kiloshard_adopt'",
		"triggers":  "select tgname || ' ' || tgrelid::regclass from pg_trigger where tgname ~ 'kiloshard'",
		"functions": "select oid::regprocedure from pg_proc where pg_get_userbyid(proowner) = 'kiloshard_adopt'",
		"grants":    "select oid::regclass::text from pg_class where relacl::text ~ 'kiloshard_adopt' union all select oid::regnamespace::text from pg_namespace where nspacl::text ~ 'kiloshard_adopt'",
	} {
		if found := b.run(query); len(found) > 0 {
			t.Errorf("%s are left: %q", what, found)
		}
	}
}

// checkIDs inserts a row into each shard that gets the next ID, so that no other row may have it.
func (b *bundle) checkIDs() {
	b.t.Helper()
	for n := range b.m.All().All() {
		for range 3 {
			if _, err := pgtest.Run(b.t.Context(), b.in(n), "insert into moves (user_id, amount) select min(id), 0 from users; insert into albums (user_id) select min(id) from users"); err != nil {
				b.t.Error(err)
			}
		}
	}
}

// killedBehind runs work in a process that waits for a lock of tables, and is killed there.
func (b *bundle) killedBehind(work, locked string) {
	b.t.Helper()
	holder := pgtest.Connect(b.t, b.host.ConnString())
	if _, err := pgtest.Run(b.t.Context(), holder, "begin; lock table "+locked+" in access share mode"); err != nil {
		b.t.Fatal(err)
	}
	cmd := b.worker(b.t.Context(), work, "")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	const waits = "select count(*) from pg_locks l join pg_stat_activity a using (pid) where not granted and application_name = '" + ledger.Application + "' and a.datname = current_database()"
	for deadline := time.Now().Add(time.Minute); b.run(waits)[0] == "0"; {
		select {
		case err := <-ended:
			b.t.Fatalf("%s ended beside a lock of %s: %v: %s", work, locked, err, &out)
		default:
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s never waited for %s", work, locked)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		b.t.Error(err)
	}
	if err := <-ended; err == nil {
		b.t.Errorf("%s ended well behind a lock of %s", work, locked)
	}
	if _, err := pgtest.Run(b.t.Context(), holder, "rollback"); err != nil {
		b.t.Error(err)
	}
	b.awaitSessions()
}
