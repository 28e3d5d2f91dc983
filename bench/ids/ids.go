package ids

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/server"
)

// rounds is the number of rounds. Each way has one turn in a round.
const rounds = 4

// Run makes IDs in every way as fast as possible, and checks all of them for duplicates. Then it fills tables keyed by
// them.
//
// A statement is SELECT array_agg(f()) FROM (SELECT generate_series(1, n)), with n in the thousands. So a call costs as
// much as a column's default in a bulk insert, and the network almost nothing. Commits do not wait for the disk, which
// would take the same time for all; but those of tickets do, since tickets guarantee it.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	m, err := newMap(cfg.Hosts)
	if err != nil {
		return nil, err
	}
	g, closeAll, err := setUp(ctx, m)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	host := m.Hosts()[0]
	report := &Report{Ceiling: server.Layout.Slots()}
	if report.Server, _, err = server.Version(ctx, host); err != nil {
		return nil, err
	}
	turn := cfg.Duration / time.Duration(rounds*len(ways())*len(cfg.Sessions))
	for _, sessions := range cfg.Sessions {
		cfg.Progress(fmt.Sprintf("IDs with %d sessions", sessions))
		rows, err := compareWays(ctx, host, g, sessions, turn)
		if err != nil {
			return nil, err
		}
		report.Rows = append(report.Rows, rows...)
	}
	cfg.Progress("many IDs at once")
	if report.Burst, err = compareBursts(ctx, host); err != nil {
		return nil, err
	}
	if report.Memory, err = measureMemory(ctx, host); err != nil {
		return nil, err
	}
	if report.Lease, err = measureLease(ctx, leaseIDs(cfg.Duration)); err != nil {
		return nil, err
	}
	if cfg.Rows > 0 {
		report.Inserts, err = fillTables(ctx, host, cfg)
	}
	return report, err
}
