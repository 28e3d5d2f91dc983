package router_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/operation"
)

// Tracers are told of what readers do, transactions and batches too.
func TestTracersOfReaders(t *testing.T) {
	t.Parallel()
	seen := &told{}
	b, ctx := withReplicas(t, options{tracers: []pgx.QueryTracer{seen}})
	b.awaitAll(ctx, t)
	seen.mu.Lock()
	seen.ended = nil
	seen.mu.Unlock()
	reader := b.shard(t, 3).ReadOnly(router.Reads{MaxLag: time.Minute, ReplicaOnly: true, Wait: time.Minute})
	tx, err := reader.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var owner int
	if err := tx.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner); err != nil || owner != 3 {
		t.Errorf("owner %d: %v", owner, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	var batch pgx.Batch
	batch.Queue(`select owner from photos where id = $1`, 1)
	if err := reader.SendBatch(ctx, &batch).Close(); err != nil {
		t.Error(err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	var got []string
	for _, op := range seen.ended {
		got = append(got, op.Summary)
		if op.Kind != operation.Tx || op.Attempt != 1 || !strings.HasPrefix(op.Host, "pg-a/") || op.Shard != 3 {
			t.Errorf("%+v", op)
		}
	}
	if text := strings.Join(got, ", "); text != "BEGIN, SELECT photos, COMMIT" {
		t.Errorf("told of %s", text)
	}
	if len(seen.lost) > 0 {
		t.Errorf("told of what was not sent: %v", seen.lost)
	}
}

// A replica may have several addresses. Any of them will do, be others dead.
func TestReplicaWithSeveralAddresses(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(theReplicated(t).harmless[0].DSN("app"))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	u.Host = "127.0.0.1:1," + u.Host
	var failed uint64
	for range 5 { // a read fails on a replica for another reason too: that a busy machine is late with a measurement
		b, ctx := withReplicas(t, options{}, u.String())
		b.awaitAll(ctx, t)
		begun := b.replica(0).Reads
		b.await(ctx, t, "reads from the replica", func(router.ReadStats) bool { return b.replica(0).Reads > begun+20 })
		if failed = b.replica(0).Failed; failed == 0 {
			return
		}
	}
	t.Errorf("%d reads failed on it, each time some", failed)
}
