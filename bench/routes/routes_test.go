package routes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// newStage returns the stage of the shortest possible benchmark.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		cfg: Config{
			NewHosts: func(context.Context) ([]shards.Host, error) { return shardtest.Hosts(t, 2), nil },
			Turn:     time.Millisecond, Rounds: 2, Shards: []int{20},
		}.withDefaults(),
		report: &Report{},
	}
	t.Cleanup(s.close)
	return s
}

func TestRouteNamesItsParts(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Only: []string{"lone", "lonely"}})
	if err == nil || !strings.Contains(err.Error(), `part "lonely": expected one of lone, many, delay, `) {
		t.Errorf("got %v", err)
	}
}

// A row of another shard ends every part.
func TestSelectPhotoChecksTheShard(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	m, err := s.cluster(t.Context(), 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.router(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		query string
		want  error
	}{
		{"select owner, title from photos where id = $1", nil},
		{"select owner, title from shard_00003.photos where id = $1", errWrongShard},
	} {
		shard, err := forKey(t.Context(), r, 7)
		if err != nil {
			t.Fatal(err)
		}
		if err := selectPhoto(t.Context(), shard, test.query, photosPerShard, 7); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.query, err, test.want)
		}
	}
}

// Each observer, and the tracing library alone, is compared with no observer, and all have made calls.
func TestObserved(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := observed(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if want := 3 * 3 * (len(observers) + 1); len(s.report.Rows) != want {
		t.Errorf("%d rows, want %d", len(s.report.Rows), want)
	}
	for _, row := range s.report.Rows {
		if row.Ours <= 0 || row.Plain == nil || *row.Plain <= 0 || row.Ratio == nil {
			t.Errorf("%+v", row)
		}
	}
}

func TestPoolDSN(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://ann:s%2Fx@db:5433/app?sslmode=disable&application_name=me",
		"host=db port=5433 user=ann password=s/x dbname=app application_name=me",
	} {
		cfg, err := pgxpool.ParseConfig(poolDSN(dsn, "it's us", 7))
		if err != nil {
			t.Fatal(err)
		}
		c := cfg.ConnConfig
		if c.Host != "db" || c.Port != 5433 || c.Password != "s/x" || c.RuntimeParams["application_name"] != "it's us" || cfg.MaxConns != 7 {
			t.Errorf("%s: host %s, port %d, application %q, %d connections", dsn, c.Host, c.Port, c.RuntimeParams["application_name"], cfg.MaxConns)
		}
	}
}

func TestLap(t *testing.T) {
	t.Parallel()
	l := lap{elapsed: 2 * time.Second, calls: 1004}
	for i := range 1000 {
		l.latencies = append(l.latencies, time.Duration(i+1)*time.Millisecond)
	}
	for metric, want := range map[string]float64{
		perSecond: 502, mean: 500_500, p50: 500_000, p99: 990_000, p999: 999_000, longest: 1_000_000,
	} {
		if got := l.value(metric); got != want {
			t.Errorf("%s: got %g, want %g", metric, got, want)
		}
	}
	if got := (lap{elapsed: time.Second}).value(p99); got != 0 {
		t.Errorf("p99 of no calls: got %g", got)
	}
}

// Every worker makes at least one call, ignored calls are not in the latencies, and an error ends the lap.
func TestTakeLap(t *testing.T) {
	t.Parallel()
	l, err := takeLap(t.Context(), 4, 0, func(_ context.Context, worker, _ int) (bool, error) { return worker == 0, nil })
	if err != nil || l.calls != 4 || len(l.latencies) != 3 {
		t.Errorf("%d calls, %d latencies, %v", l.calls, len(l.latencies), err)
	}
	end := errors.New("the end")
	_, err = takeLap(t.Context(), 4, time.Hour, func(ctx context.Context, worker, i int) (bool, error) {
		if worker == 2 && i == 3 {
			return false, end
		}
		return false, ctx.Err()
	})
	if !errors.Is(err, end) {
		t.Errorf("got %v", err)
	}
}
