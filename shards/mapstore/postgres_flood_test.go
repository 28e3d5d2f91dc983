package mapstore_test

import (
	"testing"
	"time"
)

// Every role may notify. A flood of notifications causes few queries, and the watch still yields the next version.
func TestPostgresNotifyFlood(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	swap(t, s, 0, 1)
	w := watch(t, openPostgres(t, dsn), 0)
	checkEntry(t, w.entry(t), 1, 1)
	started := time.Now()
	execSQL(t, dsn, `do $$ begin
for i in 1..5000 loop
	perform pg_notify('kiloshard_maps', '`+cluster+`');
	commit;
end loop;
end $$`)
	swap(t, s, 1, 2)
	checkEntry(t, w.entry(t), 2, 2)
	most := int(time.Since(started)/(50*time.Millisecond)) + 20 // besides the flood's: of swaps and checks
	w.stop()
	noError(t, s.Close())
	eventually(t, "the connections to end", func() bool { return queryOne[int](t, dsn, connectionsQuery) == 0 })
	const query = `select (coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int from pg_stat_user_tables where relid = 'kiloshard.maps'::regclass`
	if scans := queryOne[int](t, dsn, query); scans > most {
		t.Errorf("%d scans of kiloshard.maps under 5,000 notifications, want at most %d", scans, most)
	} else {
		t.Logf("%d scans of at most %d", scans, most)
	}
}
