package checks_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// What of a shard would not come along is named. Labels are written as a provider's would be, of which Postgres itself has none.
func TestLabels(t *testing.T) {
	t.Parallel()
	source := connect(t, shardtest.Hosts(t, 1)[0].ConnString())
	source.shard()
	for _, tt := range []struct{ label, want string }{
		{`'pg_class'::regclass, 'shard_00001.photos'::regclass, 2`, "column title of table shard_00001.photos"},
		{`'pg_proc'::regclass, 'shard_00001.f'::regproc, 0`, "function shard_00001.f()"},
		{`'pg_namespace'::regclass, 'shard_00001'::regnamespace, 0`, "schema shard_00001"},
		{`'pg_namespace'::regclass, 'public'::regnamespace, 0`, ""},
	} {
		t.Run(tt.label, func(t *testing.T) {
			source := session{t, source.Conn}
			source.exec(`begin; set local allow_system_table_mods = on; insert into pg_seclabel (classoid, objoid, objsubid, provider, label) select ` + tt.label + `, 'anon', 'masked'`)
			var want []string
			if tt.want != "" {
				want = []string{tt.want + " has a security label of anon, which would not come along: expected none"}
			}
			for _, offline := range []bool{false, true} {
				equal(t, "source", lines(source.onSource(offline).Found), want...)
			}
			source.exec("rollback")
		})
	}
}
