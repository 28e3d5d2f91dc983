package checks_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// The checks report what is missing for logical replication, with numbers, and none of it for an offline move.
func TestLogicalReplication(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, localpg.Config{Settings: map[string]string{
		"fsync": "off", "shared_buffers": "32MB", "autovacuum": "off",
		"wal_level": "replica", "max_replication_slots": "5", "max_wal_senders": "5",
		"max_logical_replication_workers": "1", "max_worker_processes": "1",
	}})
	dsn := server.DSN("postgres")
	on := connect(t, dsn)
	on.shard()

	const level = "wal_level is replica: expected logical, which takes a restart; or --offline"
	equal(t, "source", lines(on.onSource(false).Found), level)
	for used := 1; used <= 5; used++ {
		on.exec(fmt.Sprintf(`select pg_create_physical_replication_slot('s%d')`, used))
		want := []string{level}
		if used > 3 {
			want = append(want, fmt.Sprintf("all but %d of 5 replication slots are in use: expected 2 free ones (max_replication_slots)", 5-used))
		}
		equal(t, fmt.Sprintf("%d slots in use", used), lines(on.onSource(false).Found), want...)

		want = []string{"wal_level is replica: expected logical, for the way back"}
		if used == 5 {
			want = append(want, "all 5 replication slots are in use: expected a free one for the way back (max_replication_slots)")
		}
		_, back, err := on.onSource(false).WayBack(t.Context(), on.Conn, on.Conn)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("way back, %d slots in use", used), lines(back), want...)
	}
	on.exec(`select pg_drop_replication_slot(slot_name) from pg_replication_slots`)
	for used := 1; used <= 4; used++ {
		connect(t, dsn, "replication", "true")
		want := []string{level}
		if used > 3 {
			want = append(want, fmt.Sprintf("all but %d of 5 WAL senders are in use: expected 2 free ones (max_wal_senders)", 5-used))
		}
		equal(t, fmt.Sprintf("%d senders in use", used), lines(on.onSource(false).Found), want...)
	}
	offline := on.onSource(true)
	equal(t, "offline source", lines(offline.Found))

	on.exec(`drop schema shard_00001 cascade`) // of which target finds that it is there
	workers := []string{
		"all but 1 of 1 workers for subscriptions are in use: expected 2 free ones (max_logical_replication_workers)",
		"max_worker_processes is 1, max_logical_replication_workers 1: expected more of the first, since all background workers share them",
	}
	equal(t, "target", lines(on.onTarget(offline, false)), workers...)
	setting := on.text(`select case when current_setting('max_active_replication_origins', true) is null then 'max_replication_slots' else 'max_active_replication_origins' end`)
	most := on.number(`select current_setting('` + setting + `')::int`)
	for used := 1; used <= most; used++ {
		on.exec(fmt.Sprintf(`select pg_replication_origin_create('o%d')`, used))
		want := workers
		if most-used < 2 {
			want = slices.Concat(workers, []string{fmt.Sprintf("%d of %d origins of subscriptions are in use: expected 2 free ones (%s)", used, most, setting)})
		}
		equal(t, fmt.Sprintf("%d origins in use", used), lines(on.onTarget(offline, false)), want...)
	}
	equal(t, "offline target", lines(on.onTarget(offline, true)))
}
