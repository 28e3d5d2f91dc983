package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
)

// check returns a [CheckError] with all that keeps rows from moving.
func (j *job) check(ctx context.Context) error {
	e := &CheckError{}
	for _, p := range j.set.Problems {
		e.Problems = append(e.Problems, p.String())
	}
	var without []shards.Number
	for _, s := range j.state.All {
		if s.Views == "" && s.Stage == ledger.StageViews {
			without = append(without, s.Shard)
		}
	}
	if len(without) > 0 {
		e.Problems = append(e.Problems, fmt.Sprintf("shards %s have no views; expected kiloshard adopt views before", shards.SetOf(without...)))
	}
	if err := j.checkStructure(ctx, j.conn); err != nil {
		changed, ok := err.(*CheckError) //nolint:errorlint // ours, not wrapped
		if !ok {
			return err
		}
		e.Problems = append(e.Problems, changed.Problems...)
	}
	if j.state.Gate == ledger.GateViews {
		if err := j.checkQuiet(ctx, e); err != nil {
			return err
		}
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// checkStructure returns a [CheckError] if the structure of the old tables is not that of the ledger.
func (j *job) checkStructure(ctx context.Context, q ledger.Querier) error {
	partly, err := j.partlyClosed(ctx, q)
	if err != nil {
		return err
	}
	now, err := ledger.Structure(ctx, q, j.names())
	if err != nil {
		return err
	}
	before := j.state.Structure
	if partly {
		before, now = withoutOurs(before), withoutOurs(now)
	}
	e := &CheckError{}
	for _, change := range ledger.Changes(before, now) {
		e.Problems = append(e.Problems, "since adopt views another program has changed the structure: "+change)
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// partlyClosed reports whether a command that closed the old tables was killed: some of them are changed by us.
func (j *job) partlyClosed(ctx context.Context, q ledger.Querier) (bool, error) {
	if j.state.Gate != ledger.GateViews {
		return false, nil
	}
	return j.remembers(ctx, q)
}

// withoutOurs returns a structure without what closing the old tables changes: triggers and foreign keys.
func withoutOurs(structure string) string {
	lines := slices.DeleteFunc(strings.Split(structure, "\n"), func(line string) bool {
		parts := strings.Split(line, "\t")
		return len(parts) == 4 && (parts[1] == "trigger" || parts[1] == "constraint" && strings.HasPrefix(parts[3], "FOREIGN KEY"))
	})
	return strings.Join(lines, "\n")
}

// checkQuiet adds the roles that have written without a shard's path.
func (j *job) checkQuiet(ctx context.Context, e *CheckError) error {
	if j.cfg.QuietFor <= 0 {
		return nil
	}
	var since time.Time
	if err := j.conn.QueryRow(ctx, `select clock_timestamp() - make_interval(secs => $1)`, j.cfg.QuietFor.Seconds()).Scan(&since); err != nil {
		return err
	}
	if j.state.Started.After(since) {
		e.Problems = append(e.Problems, fmt.Sprintf("adopt views began at %s, which is less than %s ago; expected to know of all writes for so long", j.state.Started.UTC().Format(time.DateTime), j.cfg.QuietFor))
	}
	writes, err := ledger.OldWrites(ctx, j.conn)
	if err != nil {
		return err
	}
	for _, w := range writes {
		if w.Last.Add(ledger.Interval).After(since) {
			e.Problems = append(e.Problems, fmt.Sprintf("role %s, application %q, wrote to %s without a shard's path at %s; expected nobody to for %s", w.Role, w.Application, w.Table, w.Last.UTC().Format(time.DateTime), j.cfg.QuietFor))
		}
	}
	return nil
}
