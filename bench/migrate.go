package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// migrateRounds is the number of rounds. Each way has one turn in a round.
const migrateRounds = 2

// MigrateConfig says how [Migrate] measures.
type MigrateConfig struct {
	// NewHosts returns new empty hosts: the same number each time, on the same servers. It is called twice. The user in
	// their DSNs must be allowed to create databases.
	NewHosts func(ctx context.Context) ([]shards.Host, error)

	Shards  int           // over all hosts. Defaults to 4096
	Workers int           // sessions per host, in every way but the loop inside the servers. Defaults to 4
	Sample  int           // shards per host that all but Up migrate, at most a quarter of them; half of that with a delay. Defaults to 256
	Delay   time.Duration // of the network, each way, in whole milliseconds; 0 does not measure with a delay

	Progress func(what string)
}

// MigrateReport is the result of [Migrate].
type MigrateReport struct {
	Server  string         `json:"server"` // version of Postgres
	Shards  int            `json:"shard_count"`
	Hosts   int            `json:"host_count"`
	Workers int            `json:"sessions_per_host"`
	Rounds  int            `json:"rounds"`
	Tables  []MigrateTable `json:"tables"` // without delay, then with it

	PeakRSS      int64 `json:"peak_rss_bytes"`       // of this process during Up, including the proxies of the delay; 0 if unknown
	SessionBytes int64 `json:"session_memory_bytes"` // private memory of the largest session of Up, near its end; 0 if unknown
}

// MigrateTable is all ways to migrate over one network, in seconds: medians of the rounds.
type MigrateTable struct {
	Delay     float64         `json:"delay_ms"`      // each way, as configured
	RoundTrip float64         `json:"round_trip_ms"` // measured
	Ways      []MigrateFigure `json:"ways"`
	Again     float64         `json:"nothing_to_do_seconds"` // a second Up
	Status    float64         `json:"status_seconds"`
}

// MigrateFigure is the result of one way to migrate.
type MigrateFigure struct {
	Way      string  `json:"way"`
	Measured int     `json:"shards_measured"`
	Seconds  float64 `json:"seconds"` // for all shards: scaled up if fewer were measured
	PerShard float64 `json:"ms_per_shard"`
	VsTern   float64 `json:"times_as_fast_as_tern"`
	VsFloor  float64 `json:"ratio_to_loop"` // of time: above 1 is slower than the loop inside the servers
}

// Migrate brings shards from version 0 to version 1, which is one table with an index: by migrate.Up, by tern's own Migrator in a loop, by the loop of a tool like goose, and by PL/pgSQL loops inside the
// servers, one in each server, which is the floor, and as many in each as the others have sessions.
//
// The shards are created once. Up migrates all of them, in clones of those databases. The other ways share other clones,
// where each migrates a sample of each host's shards, and the order changes with each round. Migrate runs a checkpoint
// before each turn, and checks the versions of all shards after it.
//
// Each way runs as its users run it. Each commit of tern and of the goose-style loop waits for the disk. Up and the loops
// inside the servers commit without waiting, and end with one commit on each host that waits, which flushes all earlier
// commits. The servers keep their fsync setting, so Postgres may flush each new index when it builds it.
//
// Migrate drops the databases that it created, except those of NewHosts.
func Migrate(ctx context.Context, cfg MigrateConfig) (*MigrateReport, error) {
	if cfg.Shards <= 0 {
		cfg.Shards = 4096
	}
	if cfg.Workers <= 0 {
		cfg.Workers = 4
	}
	if cfg.Sample <= 0 {
		cfg.Sample = 256
	}
	if cfg.Delay < 0 || cfg.Delay%time.Millisecond != 0 {
		return nil, fmt.Errorf("delay %s: expected whole milliseconds", cfg.Delay)
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	b := &migrateBench{cfg: cfg}
	cfg.Progress(fmt.Sprintf("making %d shards", cfg.Shards))
	if err := b.setUp(ctx); err != nil {
		return nil, err
	}
	if least := len(b.controls) * len(otherWays()); cfg.Shards < least {
		return nil, fmt.Errorf("%d shards: expected %d or more", cfg.Shards, least)
	}
	b.report = MigrateReport{Shards: cfg.Shards, Hosts: len(b.base.Hosts()), Workers: cfg.Workers, Rounds: migrateRounds}
	var err error
	if b.report.Server, err = server.Version(ctx, b.base.Hosts()[0]); err != nil {
		return nil, err
	}
	delays := []time.Duration{0}
	if cfg.Delay > 0 {
		delays = append(delays, cfg.Delay)
	}
	for _, delay := range delays {
		table, err := b.compare(ctx, delay)
		if err != nil {
			return nil, err
		}
		b.report.Tables = append(b.report.Tables, table)
	}
	return &b.report, nil
}

// migrateBench is the state of one [Migrate].
type migrateBench struct {
	cfg      MigrateConfig
	base     *shards.Map   // of the databases to clone
	controls []shards.Host // databases of the same servers, for the statements that clone and drop
	clones   int           // number of times that all were cloned
	report   MigrateReport
}

// compare measures all ways in turns over one network.
func (b *migrateBench) compare(ctx context.Context, delay time.Duration) (MigrateTable, error) {
	table := MigrateTable{Delay: delay.Seconds() * 1000}
	sample := min(b.cfg.Sample, b.cfg.Shards/len(b.controls)/len(otherWays()))
	var far *network.Network
	if delay > 0 {
		sample = max(1, sample/2)
		var err error
		if far, err = network.Open(b.base.Hosts(), delay); err != nil {
			return table, err
		}
		defer far.Close()
	}
	var err error
	if table.RoundTrip, err = b.roundTrip(ctx, far); err != nil {
		return table, err
	}

	var up [3][]float64 // milliseconds per shard, and seconds of a second Up and of Status, by round
	others := otherWays()
	perShard := map[string][]float64{} // milliseconds, by way and round
	for round := range migrateRounds {
		turns := []func() error{
			func() error {
				b.cfg.Progress(fmt.Sprintf("migrate up, round %d of %d, %s delay", round+1, migrateRounds, delay))
				return b.turn(ctx, far, b.cfg.Shards, func(near, m *shards.Map) error {
					took, err := b.timeUp(ctx, near, m)
					up[0], up[1], up[2] = append(up[0], took[0]*1000/float64(b.cfg.Shards)), append(up[1], took[1]), append(up[2], took[2])
					return err
				})
			},
			func() error {
				b.cfg.Progress(fmt.Sprintf("the other ways, round %d of %d, %s delay", round+1, migrateRounds, delay))
				return b.turn(ctx, far, len(others)*sample*len(b.controls), func(_, m *shards.Map) error {
					for k := range others {
						way := others[(k+round*len(others)/migrateRounds)%len(others)]
						set := partOfEach(m, k*sample, sample)
						seconds, err := timed(func() error { return way.run(ctx, m, set, b.cfg.Workers) })
						if err != nil {
							return fmt.Errorf("%s: %w", way.name, err)
						}
						perShard[way.name] = append(perShard[way.name], seconds*1000/float64(set.Len()))
					}
					return nil
				})
			},
		}
		for k := range turns {
			if err := turns[(k+round)%len(turns)](); err != nil { // the first one changes with each round
				return table, err
			}
		}
	}
	perShard[wayUp] = up[0]
	table.Again, table.Status = stats.Median(up[1]), stats.Median(up[2])
	table.Ways = b.figures(perShard, sample*len(b.controls))
	return table, nil
}

// figures returns the figures of all ways from their milliseconds per shard, by way and round.
func (b *migrateBench) figures(perShard map[string][]float64, measured int) []MigrateFigure {
	var all []MigrateFigure
	for _, way := range []string{wayLoop, wayLoops, wayUp, wayGoose, wayTern} {
		own := perShard[way]
		figure := MigrateFigure{
			Way: way, Measured: measured, PerShard: stats.Median(own), Seconds: stats.Median(own) * float64(b.cfg.Shards) / 1000,
			VsTern: stats.MedianRatio(perShard[wayTern], own), VsFloor: stats.MedianRatio(own, perShard[wayLoop]),
		}
		if way == wayUp {
			figure.Measured = b.cfg.Shards
		}
		all = append(all, figure)
	}
	return all
}

// turn clones the databases, calls fn with the map of the clones and with the same map over the network, and then checks
// the number of migrated shards.
func (b *migrateBench) turn(ctx context.Context, far *network.Network, migrated int, fn func(near, m *shards.Map) error) (err error) {
	near, drop, err := b.clone(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	m, err := far.Through(near)
	if err != nil {
		return err
	}
	if err := fn(near, m); err != nil {
		return err
	}
	return checkVersions(ctx, near, migrated)
}

// timeUp returns the durations of Up, of a second Up with nothing to do, and of Status, in seconds.
func (b *migrateBench) timeUp(ctx context.Context, near, m *shards.Map) (took [3]float64, err error) {
	view, err := openView(ctx, near)
	if err != nil {
		return took, err
	}
	defer view.close()
	cfg := migrate.Config{Map: m, Files: migration, PerHost: b.cfg.Workers}
	first := cfg
	first.Progress = view
	resetPeak()
	for i, call := range []func() error{
		func() error { _, err := migrate.Up(ctx, first); return err },
		func() error { _, err := migrate.Up(ctx, cfg); return err },
		func() error { _, err := migrate.Status(ctx, cfg); return err },
	} {
		if took[i], err = timed(call); err != nil {
			return took, err
		}
		if i == 0 {
			b.report.PeakRSS = max(b.report.PeakRSS, peakRSS())
			b.report.SessionBytes = max(b.report.SessionBytes, view.largest)
		}
	}
	return took, nil
}
