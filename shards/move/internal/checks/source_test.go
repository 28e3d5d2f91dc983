package checks_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// The checks report parts of a shard that would not move. The test writes security labels itself, since Postgres has no
// provider.
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

// The checks note parts that move in another way, or not at all.
func TestLeft(t *testing.T) {
	t.Parallel()
	source := connect(t, shardtest.Hosts(t, 1)[0].ConnString())
	source.shard()
	source.exec(`
		create sequence shard_00001.next_id_seq; comment on sequence shard_00001.next_id_seq is 'x'; alter function shard_00001.f() depends on extension plpgsql;
		grant usage on schema shard_00001 to pg_monitor; grant select on shard_00001.photos to pg_monitor with grant option; set role pg_monitor; grant select on shard_00001.photos to pg_read_all_stats; reset role`)
	equal(t, "source", lines(source.onSource(true).Found),
		"note: function shard_00001.f() depends on extension plpgsql: on the target it does not",
		"note: role pg_monitor has granted rights on table shard_00001.photos: on the target they come from its owner",
		"note: the comment on sequence shard_00001.next_id_seq stays behind: it belongs to what each shard has")
}

// The checks report an extension in the shard's schema once, with a remedy, and none of its objects.
func TestExtensionInTheShard(t *testing.T) {
	t.Parallel()
	source := connect(t, shardtest.Hosts(t, 1)[0].ConnString())
	source.shard()
	source.exec(`create extension citext schema shard_00001; alter table shard_00001.photos add email shard_00001.citext`)
	equal(t, "source", lines(source.onSource(true).Found),
		`extension citext is in the shard's schema: expected it in one that is no shard's; run ALTER EXTENSION citext SET SCHEMA public, and put "extensions: [citext]" into the config`)
	source.exec(`alter extension citext set schema public`)
	equal(t, "afterwards", lines(source.onSource(true).Found))
}
