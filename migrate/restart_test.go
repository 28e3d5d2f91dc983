package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// TestServerThatCrashesAndComesBack has the server crash in the middle of a run, and be back before the run notices.
// It has forgotten shards that the run took for done: none of them may be among those that it reports as done.
func TestServerThatCrashesAndComesBack(t *testing.T) {
	t.Parallel()
	b, server := setupServer(t, 40, "001_users.sql", users, "002_photos.sql", photos)
	b.cfg.PerHost = 1 // so that the last commit before the crash, which is lost, is that of a shard that is done
	finished := 0
	b.cfg.Progress = observer(func(shards.Number) {
		if finished++; finished == 20 {
			if err := errors.Join(server.Kill(context.Background()), server.Restart(context.Background())); err != nil {
				t.Error(err)
			}
		}
	})
	report, partial := b.upFails()
	clear(b.conns)
	b.hasVersions(report.Done, 2)
	equal(t, "done", report.Done.String(), partial.Done.String())
	equal(t, "all shards", partial.Done.Len()+len(partial.Failed)+partial.NotAttempted.Len(), 40)
	if !errors.Is(partial, migrate.ErrNotFlushed) {
		t.Errorf("got %v, want ErrNotFlushed", partial)
	}

	b.cfg.Progress = nil
	b.up()
	b.hasVersions(b.m.All(), 2)
	for n := range b.m.All().All() {
		equal(t, fmt.Sprintf("current entries of shard %d", n), b.value(n, fmt.Sprintf("select count(*) from kiloshard.ledger where current and shard = %d", n)), "2")
	}
}
