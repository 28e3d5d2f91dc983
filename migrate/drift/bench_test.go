package drift_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// BenchmarkLook looks at 4096 shards of 10 tables each, with a view and a trigger, on two databases of one server.
func BenchmarkLook(b *testing.B) {
	var text strings.Builder
	text.WriteString("create function touch() returns trigger language plpgsql as $$ begin new.title := trim(new.title); return new; end $$;\n")
	for i := range 10 {
		table := "photos" + strconv.Itoa(i)
		text.WriteString("create table " + table + ` (
			id bigint primary key default next_id(), user_id bigint not null, title text,
			created timestamptz not null default now(), score int default 0);
			create index on ` + table + " (user_id);\n")
	}
	text.WriteString("create view titles as select id, title from photos0;\n")
	text.WriteString("create trigger touch before insert on photos0 for each row execute function touch();\n")
	m := shardtest.New(b, shardtest.Config{Shards: 4096, Migrations: fstest.MapFS{"001_photos.sql": {Data: []byte(text.String())}}}).Map
	for b.Loop() {
		report, err := drift.Look(b.Context(), drift.Config{Map: m})
		if err != nil || len(report.Groups) != 1 {
			b.Fatalf("got %d groups, %v", len(report.Groups), err)
		}
	}
}
