package checks_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A shard with partitions that depend on OIDs cannot move, however deep in a type the OIDs are.
func TestPartitionedByOIDs(t *testing.T) {
	t.Parallel()
	source := connect(t, shardtest.Hosts(t, 1)[0].ConnString(), "search_path", "pg_catalog")
	source.shard()
	source.exec(`set search_path = shard_00001; create type mood as enum ('glad', 'sad'); create domain feeling as mood; create type pair as (n int, m mood[]); create type moods as range (subtype = mood)`)
	for key, want := range map[string]string{
		`m mood) partition by hash (m)`:                                                       "the HASH of column m depends on OIDs, by type shard_00001.mood",
		`n int, "M" feeling) partition by hash (n, "M")`:                                      `the HASH of column "M" depends on OIDs, by type shard_00001.mood`,
		`m mood[]) partition by hash (m)`:                                                     "the HASH of column m depends on OIDs, by type shard_00001.mood",
		`m pair) partition by hash (m)`:                                                       "the HASH of column m depends on OIDs, by type shard_00001.mood",
		`m moods) partition by hash (m)`:                                                      "the HASH of column m depends on OIDs, by type shard_00001.mood",
		`m mood) partition by hash ((coalesce(m, 'sad')))`:                                    "the HASH of column m depends on OIDs, by type shard_00001.mood",
		`c regclass) partition by hash (c)`:                                                   "the HASH of column c depends on OIDs, by type regclass",
		`c regclass) partition by range (c)`:                                                  "the RANGE of column c depends on OIDs, by type regclass",
		`m mood) partition by range (m)`:                                                      "",
		`m mood) partition by list (m)`:                                                       "",
		`m mood, n int) partition by hash (n)`:                                                "",
		`m mood) partition by hash ((case m when 'glad' then 1 else 2 end))`:                  "",
		`c regclass) partition by list (c)`:                                                   "",
		`o oid) partition by range (o)`:                                                       "",
		`t text, n numeric, d date, a text[], r int4range) partition by hash (t, n, d, a, r)`: "",
	} {
		t.Run(key, func(t *testing.T) {
			source := session{t, source.Conn}
			source.exec(`begin; set local search_path = shard_00001; create table moved (` + key + `; set local search_path = pg_catalog`)
			var problems []string
			if want != "" {
				problems = []string{"partitioned table shard_00001.moved: " + want + ", which differ on the target, and so would the partitions of its rows: expected another partition key, or split --promote"}
			}
			for _, offline := range []bool{false, true} {
				equal(t, "source", lines(source.onSource(offline).Found), problems...)
			}
			source.exec("rollback")
		})
	}
}
