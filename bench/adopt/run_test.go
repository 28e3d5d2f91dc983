package adopt_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/adopt"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

func config(t *testing.T, end string) adopt.Config {
	t.Helper()
	return adopt.Config{
		NewHosts: func(context.Context) ([]shards.Host, error) { return shardtest.Hosts(t, 1), nil },
		Rows:     5000, Shards: 4, Clients: 1, Turn: 300 * time.Millisecond, Rounds: 1, Calls: 5, End: end,
	}
}

// A small service is adopted: no row is lost, doubled, changed or in a wrong shard, and the report has all figures.
func TestRun(t *testing.T) {
	t.Parallel()
	ends := []string{adopt.EndFinish}
	if pgtest.Full() {
		ends = append(ends, adopt.EndBack)
	}
	for _, end := range ends {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			report, err := adopt.Run(t.Context(), config(t, end))
			if err != nil {
				t.Fatalf("%v: %+v", err, report)
			}
			t.Logf("%+v", report)
			if len(report.Steps) != 8 || len(report.Statements) != 24 || report.OldBytes == 0 {
				t.Errorf("%d steps, expected 8, and %d comparisons of statements, expected 24", len(report.Steps), len(report.Statements))
			}
			if report.Refused == 0 || report.Written == 0 || report.Compared < 2*5000 {
				t.Errorf("%d writes refused, %d done, %d rows compared: the run proves nothing", report.Refused, report.Written, report.Compared)
			}
			for _, s := range report.Steps {
				if s.Seconds <= 0 || s.Calls == 0 || s.Longest <= 0 || s.Which == "" || s.Median <= 0 || s.Peak <= report.OldBytes || s.WAL <= 0 {
					t.Errorf("a figure is missing: %+v", s)
				}
			}
			for _, s := range report.Statements {
				if s.Ours <= 0 || s.Plain <= 0 || s.Ratio <= 0 {
					t.Errorf("a figure is missing: %+v", s)
				}
			}
		})
	}
}

// The run fails when a row is lost, doubled or in a wrong shard.
func TestDamage(t *testing.T) {
	t.Parallel()
	cfg := config(t, adopt.EndFinish)
	cfg.Damage(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `
			alter table shard_00001.follows disable trigger all;
			alter table shard_00002.likes disable trigger all;
			alter table shard_00003.profiles disable trigger all;
			alter table shard_00003.profiles drop constraint profiles_user_id_fkey;
			delete from shard_00001.follows where ctid = (select min(ctid) from shard_00001.follows);
			insert into shard_00003.profiles select * from shard_00002.profiles limit 1;
			update shard_00002.users set balance = 45 where id = 2`)
		return err
	})
	report, err := adopt.Run(t.Context(), cfg)
	if !errors.Is(err, adopt.ErrRows) {
		t.Fatalf("got %v: %+v", err, report)
	}
	if report.Lost == 0 || report.Doubled == 0 || report.Misplaced == 0 || report.Changed == 0 || len(report.Errors) == 0 {
		t.Errorf("damage was not found: %+v", report.Counts)
	}
}
