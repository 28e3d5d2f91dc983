package ids

import (
	"fmt"

	"github.com/kiloshard/kiloshard/bench/internal/server"
)

// publishedFunction is that of "Sharding & IDs at Instagram" (Instagram Engineering, 2012) with our server.Epoch, for
// shard 5.
var publishedFunction = fmt.Sprintf(`
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
	$$ LANGUAGE PLPGSQL;`, server.Epoch.UnixMilli())
