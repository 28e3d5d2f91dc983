package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// idsPerStatement returns how many IDs one statement makes: enough to make the round trip negligible for a single session,
// and few enough for many sessions to end their turns in time.
func idsPerStatement(sessions int) int { return max(1000, 10_000/sessions) }

const defaultIDsDuration = 24 * time.Second

// idsRounds is the number of rounds. Each way has one turn in a round.
const idsRounds = 4

// IDsConfig says how [IDs] measures.
type IDsConfig struct {
	Hosts    []shards.Host // three empty databases of one server: for the shards, and for two ticket servers
	Sessions []int         // numbers of concurrent sessions to measure. Defaults to 1 and 32
	Duration time.Duration // total time of making IDs. Defaults to 24 s
	Rows     int           // of each table that is filled; negative for no tables. Defaults to 1,000,000
	Progress func(what string)
}

// IDsReport is the result of [IDs].
type IDsReport struct {
	Server  string         `json:"server"`             // version of Postgres
	Ceiling int            `json:"ceiling_ids_per_ms"` // what the format holds for one shard
	Rows    []IDsFigure    `json:"rows"`
	HandOut LeaseFigure    `json:"lease"`
	Many    ManyFigure     `json:"many"`
	Wrapper WrapperFigure  `json:"wrapper"`
	Inserts []InsertFigure `json:"inserts"`
}

// IDsFigure is the result of one way of making IDs, with one number of sessions.
type IDsFigure struct {
	Function     string  `json:"function"`
	Sessions     int     `json:"sessions"`
	IDs          int     `json:"ids"`
	Microseconds float64 `json:"microseconds_per_id"` // of one session's time
	PerMs        float64 `json:"ids_per_ms"`          // of all sessions together
	OfCeiling    float64 `json:"share_of_ceiling"`    // 1 is the format's ceiling for one shard
	WALBytes     float64 `json:"wal_bytes_per_id"`
	Duplicates   int     `json:"duplicates"`         // among all IDs of this row
	VsPublished  float64 `json:"ratio_to_published"` // of IDs per millisecond: above 1 is faster
	VsOneShard   float64 `json:"ratio_to_one_shard"` // the same to next_id on one shard
}

// IDs makes IDs in every way as fast as possible, and checks all of them for duplicates. Then it fills tables keyed by
// them.
//
// A statement is SELECT array_agg(f()) FROM (SELECT generate_series(1, n)), with n in the thousands. So a call costs as
// much as a column's default in a bulk insert, and the network almost nothing. Commits do not wait for the disk, which
// would take the same time for all; but those of tickets do, since tickets guarantee it.
func IDs(ctx context.Context, cfg IDsConfig) (*IDsReport, error) {
	if len(cfg.Sessions) == 0 {
		cfg.Sessions = []int{1, 32}
	}
	if cfg.Duration <= 0 {
		cfg.Duration = defaultIDsDuration
	}
	if cfg.Rows == 0 {
		cfg.Rows = 1_000_000
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	m, err := idsMap(cfg.Hosts)
	if err != nil {
		return nil, err
	}
	e, closeAll, err := setUpIDs(ctx, m)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	report := &IDsReport{Ceiling: server.Layout.Slots()}
	if report.Server, err = server.Version(ctx, m.Hosts()[0]); err != nil {
		return nil, err
	}
	turn := cfg.Duration / time.Duration(idsRounds*len(contenders())*len(cfg.Sessions))
	for _, sessions := range cfg.Sessions {
		cfg.Progress(fmt.Sprintf("IDs with %d sessions", sessions))
		rows, err := compareIDs(ctx, m.Hosts()[0], e, sessions, turn)
		if err != nil {
			return nil, err
		}
		report.Rows = append(report.Rows, rows...)
	}
	cfg.Progress("many IDs at once")
	if report.Many, err = compareMany(ctx, m.Hosts()[0]); err != nil {
		return nil, err
	}
	cfg.Progress("what next_id() costs by itself")
	if report.Wrapper, err = measureWrapper(ctx, m.Hosts()[0]); err != nil {
		return nil, err
	}
	if report.HandOut, err = handOut(ctx, handOutIDs(cfg.Duration)); err != nil {
		return nil, err
	}
	if cfg.Rows > 0 {
		report.Inserts, err = fillTables(ctx, m.Hosts()[0], cfg)
	}
	return report, err
}

// compareIDs measures all ways in turns with one number of sessions.
func compareIDs(ctx context.Context, host shards.Host, e *environment, sessions int, turn time.Duration) ([]IDsFigure, error) {
	conns, err := server.Open(ctx, host, sessions)
	if err != nil {
		return nil, err
	}
	defer server.Close(conns)

	all := contenders()
	takings := make([]taking, len(all))
	perMs := make([][]float64, len(all)) // by contender and round
	for round := range idsRounds {
		for k := range all {
			i := (k + round) % len(all) // the first one changes with each round
			t, err := takeTurn(ctx, e, conns, all[i], turn)
			if err != nil {
				return nil, fmt.Errorf("%s with %d sessions: %w", all[i].name, sessions, err)
			}
			takings[i].add(t)
			perMs[i] = append(perMs[i], t.perMs())
		}
	}

	figures := make([]IDsFigure, len(all))
	for i, c := range all {
		t := takings[i]
		figures[i] = IDsFigure{
			Function: c.name, Sessions: sessions, IDs: t.ids.len(),
			Microseconds: float64(sessions) * float64(t.elapsed.Microseconds()) / float64(t.ids.len()),
			PerMs:        t.perMs(), OfCeiling: t.perMs() / float64(server.Layout.Slots()),
			WALBytes:   float64(t.wal) / float64(t.ids.len()),
			Duplicates: t.ids.duplicates(), VsPublished: stats.MedianRatio(perMs[i], perMs[0]), VsOneShard: stats.MedianRatio(perMs[i], perMs[1]),
		}
	}
	return figures, nil
}

// taking is what sessions made in one turn.
type taking struct {
	ids     idSet
	elapsed time.Duration
	wal     int64 // bytes of WAL written
}

func (t *taking) add(other taking) {
	t.ids.add(other.ids)
	t.elapsed += other.elapsed
	t.wal += other.wal
}

func (t *taking) perMs() float64 {
	return float64(t.ids.len()) / (float64(t.elapsed) / float64(time.Millisecond))
}

// takeTurn makes IDs in all sessions for one turn.
func takeTurn(ctx context.Context, e *environment, conns []*pgx.Conn, c contender, turn time.Duration) (taking, error) {
	draws := make([]draw, len(conns))
	for i, conn := range conns {
		draws[i] = c.open(e, conn, i)
	}
	before, err := walPosition(ctx, conns[0])
	if err != nil {
		return taking{}, err
	}
	sets := make([]idSet, len(conns))
	start := time.Now()
	err = stats.Together(len(conns), func(i int) (err error) {
		for time.Since(start) < turn && err == nil {
			err = draws[i](ctx, idsPerStatement(len(conns)), &sets[i])
		}
		return err
	})
	t := taking{elapsed: time.Since(start)}
	if err != nil {
		return t, err
	}
	after, err := walPosition(ctx, conns[0])
	t.wal = after - before
	for _, set := range sets {
		t.ids.add(set)
	}
	return t, err
}
