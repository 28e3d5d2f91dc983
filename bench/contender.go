package bench

import (
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// The names of the ways to make IDs.
const (
	Published = "published" // Instagram's function, as published
	Ours      = "kiloshard"
	Nextval   = "nextval" // a bare sequence, which is no sharded ID
	UUID      = "gen_random_uuid"
)

// contender is a way to make IDs.
type contender struct {
	name  string
	setup string // SQL that makes what it needs in schema bench
	call  string // an SQL expression that makes one ID, of type bigint or uuid
}

var (
	epoch  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	layout = shards.DefaultLayout
)

// contenders returns all ways to make IDs, the published one first. Each stands for shard 5.
func contenders() []contender {
	engine, _ := sql.Engine(sqlParams())
	return []contender{
		{
			// The function of "Sharding & IDs at Instagram", with our epoch.
			name: Published,
			setup: fmt.Sprintf(`
				CREATE SEQUENCE bench.table_id_seq;
				CREATE FUNCTION bench.published(OUT result bigint) AS $$
				DECLARE
					our_epoch bigint := %d;
					seq_id bigint;
					now_millis bigint;
					shard_id int := 5;
				BEGIN
					SELECT nextval('bench.table_id_seq') %% 1024 INTO seq_id;
					SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
					result := (now_millis - our_epoch) << 23;
					result := result | (shard_id << 10);
					result := result | (seq_id);
				END;
				$$ LANGUAGE PLPGSQL;`, epoch.UnixMilli()),
			call: "bench.published()",
		},
		{name: Ours, setup: engine + sql.Shard(sqlParams(), 5, "shard_00005"), call: "shard_00005.next_id()"},
		{name: Nextval, setup: "CREATE SEQUENCE bench.bare_seq;", call: "nextval('bench.bare_seq')"},
		{name: UUID, call: "gen_random_uuid()"},
	}
}

func sqlParams() sql.Params {
	return sql.Params{
		Cluster: "bench", SchemaPrefix: "shard_", Epoch: epoch, End: layout.End(epoch),
		TimeBits: layout.TimeBits(), ShardBits: layout.Shard, SequenceBits: layout.Sequence,
	}
}
