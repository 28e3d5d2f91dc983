package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// idsPerStatement returns how many IDs one statement makes: so many that the round trip is hidden,
// which a session that is alone waits for, and so few that many sessions end their turns in time.
func idsPerStatement(sessions int) int { return max(1000, 10_000/sessions) }

// idsRounds is how often all ways take their turn.
const idsRounds = 4

// IDsConfig says how [IDs] measures.
type IDsConfig struct {
	DSN      string        // of a database that may be written to
	Sessions []int         // how many sessions make IDs at once, one after the other. Defaults to 1 and 32
	Duration time.Duration // of all measuring together. Defaults to 16 s
}

// IDsReport is what [IDs] measured.
type IDsReport struct {
	Server  string      `json:"server"`             // version of Postgres
	Ceiling int         `json:"ceiling_ids_per_ms"` // what the format holds for one shard
	Rows    []IDsFigure `json:"rows"`
}

// IDsFigure is what one way of making IDs did, with one number of sessions.
type IDsFigure struct {
	Function     string  `json:"function"`
	Sessions     int     `json:"sessions"`
	IDs          int     `json:"ids"`
	Microseconds float64 `json:"microseconds_per_call"` // of one session's time
	PerMs        float64 `json:"ids_per_ms"`            // of all sessions together
	OfCeiling    float64 `json:"share_of_ceiling"`      // 1 is the format's ceiling for one shard
	Duplicates   int     `json:"duplicates"`            // among all IDs of this row
	VsPublished  float64 `json:"ratio_to_published"`    // of IDs per millisecond: above 1 is faster
}

// IDs makes IDs in every way, in sessions that run flat out, and checks all of them for duplicates.
//
// A statement is SELECT array_agg(f()) FROM (SELECT generate_series(1, n)), n in the thousands, so that a
// call costs what it costs as a column's default in a bulk insert, and the network next to nothing.
// Its commit does not wait for the disk, which would be the same for all and is no part of the call.
func IDs(ctx context.Context, cfg IDsConfig) (*IDsReport, error) {
	if len(cfg.Sessions) == 0 {
		cfg.Sessions = []int{1, 32}
	}
	if cfg.Duration <= 0 {
		cfg.Duration = 16 * time.Second
	}
	all := contenders()
	report := &IDsReport{Ceiling: layout.Slots()}
	if err := setUpIDs(ctx, cfg.DSN, all, report); err != nil {
		return nil, err
	}
	turn := cfg.Duration / time.Duration(idsRounds*len(all)*len(cfg.Sessions))
	for _, sessions := range cfg.Sessions {
		rows, err := compareIDs(ctx, cfg.DSN, all, sessions, turn)
		if err != nil {
			return nil, err
		}
		report.Rows = append(report.Rows, rows...)
	}
	return report, nil
}

func setUpIDs(ctx context.Context, dsn string, all []contender, report *IDsReport) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&report.Server); err != nil {
		return err
	}
	script := "CREATE SCHEMA bench;"
	for _, c := range all {
		script += c.setup + "\n"
	}
	_, err = conn.Exec(ctx, script)
	return err
}

// compareIDs lets all ways take turns with one number of sessions.
func compareIDs(ctx context.Context, dsn string, all []contender, sessions int, turn time.Duration) ([]IDsFigure, error) {
	conns, err := open(ctx, dsn, sessions)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, conn := range conns {
			_ = conn.Close(ctx)
		}
	}()

	takings := make([]taking, len(all))
	perMs := make([][]float64, len(all)) // by contender and round
	for round := range idsRounds {
		for k := range all {
			i := (k + round) % len(all) // nobody always goes first
			t, err := takeTurn(ctx, conns, all[i].call, turn)
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
			PerMs:        t.perMs(), OfCeiling: t.perMs() / float64(layout.Slots()),
			Duplicates: t.ids.duplicates(), VsPublished: medianRatio(perMs[i], perMs[0]),
		}
	}
	return figures, nil
}

func open(ctx context.Context, dsn string, n int) ([]*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["synchronous_commit"] = "off"
	var conns []*pgx.Conn
	for range n {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			for _, opened := range conns {
				_ = opened.Close(ctx)
			}
			return nil, fmt.Errorf("session %d of %d: %w", len(conns)+1, n, err)
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

// taking is what sessions made in some time.
type taking struct {
	ids     idSet
	elapsed time.Duration
}

func (t *taking) add(other taking) {
	t.ids.add(other.ids)
	t.elapsed += other.elapsed
}

func (t *taking) perMs() float64 {
	return float64(t.ids.len()) / (float64(t.elapsed) / float64(time.Millisecond))
}

// takeTurn lets all sessions make IDs for the length of a turn.
func takeTurn(ctx context.Context, conns []*pgx.Conn, call string, turn time.Duration) (taking, error) {
	query := fmt.Sprintf("SELECT array_agg(%s) FROM (SELECT generate_series(1, %d)) AS calls", call, idsPerStatement(len(conns)))
	sets := make([]idSet, len(conns))
	errs := make([]error, len(conns))
	start := time.Now()
	var wg sync.WaitGroup
	for i, conn := range conns {
		wg.Go(func() {
			for time.Since(start) < turn && errs[i] == nil {
				errs[i] = sets[i].collect(conn.Query(ctx, query))
			}
		})
	}
	wg.Wait()
	t := taking{elapsed: time.Since(start)}
	for _, set := range sets {
		t.ids.add(set)
	}
	return t, errors.Join(errs...)
}

// medianRatio returns the median of a[i]/b[i].
func medianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
