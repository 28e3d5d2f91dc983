package rows_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// TestLockTimeout holds that a cutover whose views a long transaction holds gives up its locks within the lock timeout, again and again: clients
// behind it go on, and it is done once the transaction ends. A client with a statement_timeout a little above the lock timeout never meets it.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	long, other := b.in(1), b.in(1)
	if _, err := pgtest.Run(t.Context(), other, "set statement_timeout = '3s'"); err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.LockTimeout = 200 * time.Millisecond
	report := cfg.Report
	var began atomic.Bool
	cfg.Report = func(e rows.Event) {
		// The last comparison is before the first cutover; the transaction's snapshot is newer than the copy.
		if report(e); e.Kind == rows.Compared && began.CompareAndSwap(false, true) {
			if _, err := pgtest.Run(t.Context(), long, "begin; select count(*) from tags; select count(*) from users"); err != nil {
				t.Error(err)
			}
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := rows.Tables(t.Context(), cfg)
		ended <- err
	}()
	waits := 0
	for deadline := time.Now().Add(time.Minute); waits < 10; {
		if time.Now().After(deadline) {
			t.Fatal("the cutover never waited for the transaction")
		}
		select {
		case err := <-ended:
			t.Fatalf("the cutover ended while a transaction had the view: %v", err)
		default:
		}
		if _, err := pgtest.Run(t.Context(), other, "update users set country = 'nl' where id = 9; insert into tags select 3, 't' || clock_timestamp(); select count(*) from albums"); err != nil {
			t.Fatalf("a client behind the cutover: %v", err)
		}
		if b.run("select count(*) from pg_locks where not granted and mode = 'AccessExclusiveLock' and database = (select oid from pg_database where datname = current_database())")[0] != "0" {
			waits++
		}
	}
	if _, err := pgtest.Run(t.Context(), long, "commit"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	b.checkShards(t)
}
