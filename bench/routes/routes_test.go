package routes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// routeOn returns the shortest possible benchmark.
func routeOn(t *testing.T) *bench {
	t.Helper()
	return &bench{
		cfg: Config{
			NewHosts: func(context.Context) ([]shards.Host, error) { return shardtest.Hosts(t, 2), nil },
			Turn:     time.Millisecond, Rounds: 2, Shards: []int{20},
		}.withDefaults(),
	}
}

func TestRouteNamesItsParts(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Only: []string{"lone", "lonely"}})
	if err == nil || !strings.Contains(err.Error(), `part "lonely": expected one of decision, lone, many, `) {
		t.Errorf("got %v", err)
	}
}

// A row of another shard ends every part except the one that counts such rows.
func TestSelectPhotoChecksTheShard(t *testing.T) {
	t.Parallel()
	b := routeOn(t)
	m, err := b.newCluster(t.Context(), 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(t.Context(), router.Config{Map: m, Failover: router.Failover{FailAfter: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
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

func TestGetManyPart(t *testing.T) {
	t.Parallel()
	b := routeOn(t)
	if err := getManyPart(fetchByLoop).Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var whats []string
	for _, row := range b.report.Rows {
		if row.Ours <= 0 || row.Plain == nil || *row.Plain <= 0 {
			t.Errorf("%+v", row)
		}
		whats = append(whats, row.What)
	}
	want := []string{"500 IDs of 20 shards on 2 hosts, loopback", "500 IDs of 20 shards on 2 hosts, 2ms a round trip"}
	if got := slices.Compact(whats); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckPhotos(t *testing.T) {
	t.Parallel()
	one, two := photo{1, titleOf(1)}, photo{2, titleOf(2)}
	for _, test := range []struct {
		name   string
		photos []photo
		ok     bool
	}{
		{"all", []photo{two, one}, true},
		{"one is missing", []photo{two}, false},
		{"twice", []photo{one, two, two}, false},
		{"another", []photo{one, two, {3, titleOf(3)}}, false},
		{"another title", []photo{one, {2, titleOf(1)}}, false},
	} {
		if err := checkPhotos(test.photos, []shards.ID{1, 2}); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
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
