package prove_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
)

// Readers of a shard read from replicas of both hosts while it moves to and fro: no read fails, and each sees what was written before it,
// on the old host or the new one.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := start(t, map[string]localpg.Config{})
	config := c.load(c.direct).Config()
	for i, h := range config.Hosts {
		name := h.Name + "-standby"
		backup, err := c.servers[h.Name].Backup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		standby, err := backup.Standby(t.Context(), name, map[string]string{"wal_receiver_status_interval": "1s"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := standby.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		c.servers[name], c.links["mover "+name] = standby, newLink(t, standby.DSN(database))
		config.Hosts[i].Replicas = []string{"${" + variable(name) + "}"}
	}
	c.direct, c.mover = c.open(c.directly), c.open(c.throughLinks) // which know the standbys
	if _, err := c.direct.Swap(t.Context(), config.Version, mapstore.Change{Config: config, By: "test"}); err != nil {
		t.Fatal(err)
	}
	w := c.callers()
	var onReplicas atomic.Int64
	w.callers.Go(func() {
		w.loop(func(ctx context.Context, call int) error {
			title := fmt.Sprintf("read %d", call)
			if _, err := w.shard.Exec(ctx, `insert into photos (title) values ($1)`, title); err != nil {
				return err
			}
			at, err := w.shard.Position(ctx)
			if err != nil {
				return err
			}
			reads := router.Reads{After: at}
			if call%4 == 3 { // without a position: it is one of a host that the shard may leave before it is read
				reads = router.Reads{ReplicaOnly: true}
			}
			reader := w.shard.ReadOnly(reads)
			var count int
			var standby bool
			const query = `select count(*), pg_is_in_recovery() from photos where title = $1`
			scan := func(row pgx.Row) error { return row.Scan(&count, &standby) }
			switch call % 4 {
			case 0:
				var batch pgx.Batch
				batch.Queue(query, title).QueryRow(scan)
				err = reader.SendBatch(ctx, &batch).Close()
			case 1:
				err = reader.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return scan(tx.QueryRow(ctx, query, title)) })
			default:
				err = scan(reader.QueryRow(ctx, query, title))
			}
			switch {
			case err != nil:
				return fmt.Errorf("%s, of %d: %w", title, call%4, err)
			case count > 1, count < 1 && !reads.ReplicaOnly:
				t.Errorf("%s is there %d times for a reader, on a standby: %v", title, count, standby)
			case standby:
				onReplicas.Add(1)
			}
			return nil
		})
	})
	read := func(on string) {
		t.Helper()
		begun := onReplicas.Load()
		c.eventually(func() string { return "no replica of " + on + " is read" }, func() bool { return onReplicas.Load() > begun })
	}
	read("pg-a")
	for range 2 {
		from, to := c.home()
		if _, err := move.Run(t.Context(), c.config(from, to)); err != nil {
			t.Fatal(err)
		}
		read(to)
		w.some()
		c.whole(to)
		w.check(to)
		c.clean()
	}
}
