package migrate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/sql"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, 2, "001_users.sql", users, "002_fails.sql", "do $$ begin if current_schema() = 'shard_00002' then raise 'not here'; end if; end $$", "003_more.sql", "select pg_sleep(0.02)")
	b.cfg.By = "o'neil@\\desk"
	began := time.Now()
	report, _ := b.upFails()
	elapsed := time.Since(began)
	const entries = `
		select string_agg(format('%s %s %s %s %s', version, direction, current, coalesce(sqlstate, '-'), left(error, 23)), ', ' order by entry)
		from kiloshard.ledger where shard = `
	equal(t, "a shard that is done", b.value(1, entries+"1"), "1 up t - , 2 up t - , 3 up t - ")
	equal(t, "a shard that failed", b.value(2, entries+"2"), "1 up t - , 2 up f P0001 migration 002_fails.sql")
	equal(t, "who", b.value(1, "select string_agg(distinct who, ' ') from kiloshard.ledger"), b.cfg.By)
	equal(t, "run", b.value(1, "select string_agg(distinct run, ' ') from kiloshard.ledger"), report.Run)
	within := fmt.Sprintf("select bool_and(took > '20 ms' and took < '%d us') from kiloshard.ledger where version = 3", elapsed.Microseconds())
	equal(t, "how long", b.value(1, within), "true")
	equal(t, "one after the other", b.value(1, "select bool_and(a.began + a.took <= b.began) from kiloshard.ledger a join kiloshard.ledger b on b.shard = a.shard and b.version = a.version + 1"), "true")
	equal(t, "checksum", b.value(1, "select string_agg(distinct length(checksum)::text, ' ') from kiloshard.ledger"), "64")
}

// TestChangedFiles changes files after they were run: each way to look at the shards says so.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 2, "001_users.sql", users, "002_photos.sql", photos)
	b.up()
	b.cfg.Files = files("001_users.sql", users+" -- changed", "002_photos.sql", photos)
	const want = "[{1 001_users.sql 001_users.sql 0-5}]"
	status, err := migrate.Status(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", fmt.Sprint(status.Changed), want)
	equal(t, "up", fmt.Sprint(b.up().Changed), want)

	// A file that is run again as it is now is the directory's.
	b.cfg.Files = files("001_users.sql", users, "002_photos.sql", "create table p2 (id int)"+below+"drop table photos")
	b.cfg.Shards, b.cfg.To = set(t, "3"), 1
	down(t, b)
	b.cfg.To = 0
	b.up()
	b.cfg.Shards = b.m.All()
	status, err = migrate.Status(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status of one that was run again", fmt.Sprint(status.Changed), "[{2 002_photos.sql 002_photos.sql 0-2,4-5}]")
}

// A ledger of an older version is brought to the present one by the next run that has something to do.
func TestLedgerOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users)
	b.up()
	const version = "select obj_description('kiloshard.ledger'::regclass, 'pg_class')"
	present := b.value(0, version)
	equal(t, "version", present, sql.VersionMark+sql.Version(sql.Ledger()))
	b.exec(0, `create or replace function kiloshard.end_migration(
		schema text, after int, run text, who text, shard int, version int, file text, direction text, checksum text, first boolean
	) returns boolean language sql as 'select false'; comment on table kiloshard.ledger is 'kiloshard version 0123456789abcdef'`)
	b.cfg.Files = files("001_users.sql", users, "002_photos.sql", photos)
	b.up()
	equal(t, "version after", b.value(0, version), present)
	equal(t, "ledger", b.value(0, ledgerOf(0)), "up1, up2")
}
