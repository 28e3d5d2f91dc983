package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

const greetings = "\n-- {{.shard}} says hello\ncreate table {{.schema}}.greetings (shard int default {{.shard}});\n"

func TestPlanTellsWhatUpWouldDo(t *testing.T) {
	t.Parallel()
	b := setup(t, 10, 2, "001_users.sql", users)
	b.cfg.Shards = set(t, "0-2,5-8")
	b.up()
	b.cfg.Files = files("001_users.sql", users, "002_photos.sql", photos)
	b.cfg.Shards = set(t, "6")
	b.up()
	b.cfg.Files = files("001_users.sql", users, "002_photos.sql", photos, "003_greetings.sql", greetings)
	b.cfg.Shards = shards.Set{}
	before := fmt.Sprint(b.versions())

	plan, err := migrate.Plan(t.Context(), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "target", plan.Target, 3)
	equal(t, "up to date", plan.UpToDate.String(), "")
	equal(t, "groups", fmt.Sprint(plan.Groups), "["+
		"{0 3 3-4,9 [{pg-a 3-4} {pg-b 9}] [001_users.sql 002_photos.sql 003_greetings.sql]} "+
		"{1 3 0-2,5,7-8 [{pg-a 0-2} {pg-b 5,7-8}] [002_photos.sql 003_greetings.sql]} "+
		"{2 3 6 [{pg-b 6}] [003_greetings.sql]}]")
	equal(t, "sample", *plan.Sample, migrate.SampleShard{Shard: 9, Schema: "shard_00009", Host: "pg-b"})
	equal(t, "files", len(plan.Files), 3)
	equal(t, "shards of the first", plan.Files[0].Shards, 3)
	equal(t, "shards of the second", plan.Files[1].Shards, 9)
	equal(t, "SQL of the first", plan.Files[0].SQL, strings.TrimSpace(users))
	equal(t, "the third", plan.Files[2], migrate.PlanFile{
		Version: 3, Name: "003_greetings.sql", Line: 2, Rendered: true, Shards: 10,
		SQL: "-- 9 says hello\ncreate table shard_00009.greetings (shard int default 9);",
	})
	equal(t, "versions", fmt.Sprint(b.versions()), before)

	b.cfg.To, b.cfg.Shards = 1, set(t, "2-3")
	plan, err = migrate.Plan(t.Context(), b.cfg)
	equal(t, "error", err, nil)
	equal(t, "up to date at 1", plan.UpToDate.String(), "2")
	equal(t, "groups up to 1", fmt.Sprint(plan.Groups), "[{0 1 3 [{pg-a 3}] [001_users.sql]}]")

	b.cfg.To, b.cfg.Shards = 0, shards.Set{}
	b.up()
	plan, err = migrate.Plan(t.Context(), b.cfg)
	equal(t, "error when nothing is pending", err, nil)
	equal(t, "nothing is pending", fmt.Sprint(plan.UpToDate, plan.Groups, plan.Files, plan.Sample), "0-9 [] [] <nil>")
}

func TestPlanTellsWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	b := setup(t, 9, 3, "001_users.sql", users)
	b.up()
	b.exec(1, "drop schema shard_00001 cascade")
	b.exec(4, "update schema_version set version = 9")
	b.exec(5, "delete from schema_version")
	b.cfg.Files = files("001_users.sql", users, "002_b.sql", "create table b ();\ncommit")
	broken := b.m.Config()
	broken.Hosts = append(b.m.Hosts()[:2:2], shards.Host{Name: "pg-c", DSN: "postgres://app:s3cret@127.0.0.1:1/app"})
	m, err := broken.Map()
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Map = m

	plan, err := migrate.Plan(t.Context(), b.cfg)
	var partial *shards.PartialError
	if !errors.As(err, &partial) {
		t.Fatalf("got error %v, want a PartialError", err)
	}
	equal(t, "groups", fmt.Sprint(plan.Groups), "[{1 2 0,2-3 [{pg-a 0,2} {pg-b 3}] [002_b.sql]}]")
	equal(t, "files", len(plan.Files), 1)
	equal(t, "done", partial.Done.Len(), 0)
	equal(t, "not attempted", partial.NotAttempted.String(), "0,2-3,6-8")
	equal(t, "failed", len(partial.Failed), 3)
	var host *shards.HostError
	var file *migrate.FileError
	if !errors.Is(err, migrate.ErrNothingRun) || !errors.Is(err, migrate.ErrNotCreated) || !errors.Is(err, migrate.ErrAhead) ||
		!errors.As(err, &host) || host.Host != "pg-c" || !errors.As(err, &file) || file.File != "002_b.sql" || file.Line != 2 {
		t.Errorf("got error %v", err)
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error shows the password: %v", err)
	}

	b.cfg.To = 3
	if _, err := migrate.Plan(t.Context(), b.cfg); err == nil || err.Error() != "version 3: the files go from 1 to 2" {
		t.Errorf("a version that is not there: got %v", err)
	}
}

// Tern's lock, held by somebody else, keeps Up from running, and not Plan.
func TestPlanTakesNoLock(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	b.execHost(b.m.Hosts()[0], "select pg_advisory_lock(9628173550095224)")
	plan, err := migrate.Plan(t.Context(), b.cfg)
	equal(t, "error", err, nil)
	equal(t, "groups", fmt.Sprint(plan.Groups), "[{0 1 0-1 [{pg-a 0-1}] [001_users.sql]}]")
	equal(t, "version tables", b.value(0, "select count(*) from pg_tables where tablename = 'schema_version'"), "0")
}
