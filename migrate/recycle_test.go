package migrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
)

// TestSessionsAreRecycled has one session at a time take so many shards through files that the first would
// work on too many if it lived on. The files enter the session that ran them.
func TestSessionsAreRecycled(t *testing.T) {
	t.Parallel()
	const count = migrate.RecycleAfter + 10
	tables := func(names string) string {
		var b strings.Builder
		for _, name := range strings.Fields(names) {
			b.WriteString("create table " + name + " (id bigint);\n")
		}
		return b.String()
	}
	b := setup(t, count, 1,
		"001_tables.sql", tables("a b c d"),
		"002_more.sql", tables("e f g"),
		"003_rest.sql", tables("h i j")+"create table worked as select pg_backend_pid() as pid")
	b.cfg.PerHost = 1
	const worked = `select (xpath('/row/pid/text()', query_to_xml(format('select pid from %I.worked', nspname), false, true, '')))[1]::text as pid
		from pg_namespace where nspname like 'shard\_%'`
	equal(t, "done", b.up().Done.Len(), count)
	equal(t, "shards entered", b.value(0, "select count(*) from ("+worked+") w"), fmt.Sprint(count))
	const most = `select max(worked) from (select count(*) as worked from (` + worked + `) w group by pid) as session`
	equal(t, "shards of the session that worked on most", b.value(0, most), fmt.Sprint(migrate.RecycleAfter))
}
