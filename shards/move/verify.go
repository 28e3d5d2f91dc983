package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// RowsError says that the rows on the target are not those on the source.
type RowsError struct {
	Differences []string // such as "photos: 1000 rows on pg-a, 999 on pg-b"
}

// Error names the first table that differs.
func (e *RowsError) Error() string {
	text := "the target's rows differ from the source's: " + e.Differences[0]
	if more := len(e.Differences) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more tables", more)
	}
	return text
}

// comparison has the results of the last comparisons of the two sides.
type comparison struct {
	catalogs structure.Catalogs // of the source, when the structures were compared
	again    int                // how often the structures were compared once more
	seen     [2]string          // the snapshots of source and target as of which the rows are known to be the same
	rows     int64              // in the tables that were compared last
	small    bool               // all rows are compared while writers wait
	final    bool               // the rows that have changed since seen are compared while writers wait
}

// compare compares tables of the shard on both hosts, at the same time. With since, a snapshot of the source and one of the target, it compares
// only the rows that have changed since, and how many there are. The error is a [RowsError] if they differ.
func (j *job) compare(ctx context.Context, from, to rows.Querier, which rows.Tables, since [2]string) error {
	return j.compareSums(ctx,
		func(ctx context.Context) ([]rows.Sum, error) {
			return rows.Sums(ctx, from, j.Schema, j.Schema, which, since[0])
		},
		func(ctx context.Context) ([]rows.Sum, error) {
			return rows.Sums(ctx, to, j.copied(), j.Schema, which, since[1])
		})
}

// compareSums compares what two functions return, which run at the same time.
func (j *job) compareSums(ctx context.Context, ofSource, ofTarget func(context.Context) ([]rows.Sum, error)) error {
	var source, target []rows.Sum
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if source, err = ofSource(both); err != nil {
			return fmt.Errorf("comparing rows on %s: %w", j.Source, err)
		}
		return nil
	})
	group.Go(func() (err error) {
		if target, err = ofTarget(both); err != nil {
			return fmt.Errorf("comparing rows on %s: %w", j.Target, err)
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	e := &RowsError{}
	j.comparison.rows = 0
	found := map[string]rows.Sum{}
	for _, t := range target {
		found[t.Table] = t
	}
	for _, s := range source {
		j.comparison.rows += s.Rows
		switch t, ok := found[s.Table]; {
		case !ok:
			e.Differences = append(e.Differences, fmt.Sprintf("%s is not on %s", s.Table, j.Target))
		case s.Rows != t.Rows:
			e.Differences = append(e.Differences, fmt.Sprintf("%s: %d rows on %s, %d on %s", s.Table, s.Rows, j.Source, t.Rows, j.Target))
		case s.Sum != t.Sum:
			e.Differences = append(e.Differences, fmt.Sprintf("%s: %d rows on both, and not the same", s.Table, s.Rows))
		}
	}
	if len(e.Differences) > 0 {
		return e
	}
	return nil
}

// verifyUnderFence compares all rows of a small shard, and of a large one those that were copied just now, and those that have
// changed since it was compared, if that is fast enough.
func (j *job) verifyUnderFence(ctx context.Context, tx pgx.Tx) error {
	if j.comparison.small {
		return j.compare(ctx, tx, j.to, rows.All, [2]string{})
	}
	if j.apart.unlogged {
		if err := j.compare(ctx, tx, j.to, rows.Unlogged, [2]string{}); err != nil {
			return err
		}
	}
	if !j.comparison.final {
		return nil
	}
	err := j.compare(ctx, tx, j.to, rows.Logged, j.comparison.seen)
	if differs := (*RowsError)(nil); errors.As(err, &differs) {
		return &lastPassError{differs}
	}
	return err
}

// lastPassError says that the rows which changed last differ. It may be wrong about rows that a transaction wrote in a savepoint that
// it had set before, so the mover compares all rows before it gives up.
type lastPassError struct{ *RowsError }

func (e *lastPassError) Unwrap() error { return e.RowsError }

// verifyBefore compares what can be compared while nobody waits: the structure, which a person may have changed, and
// the rows of a large shard: all, and then those that have changed since, until that is fast enough to be done once more while
// writers wait, or gets no faster.
func (j *job) verifyBefore(ctx context.Context) error {
	if err := j.measure(ctx); err != nil {
		return err
	}
	c := &j.comparison
	if c.small = j.bytes <= j.cfg.VerifyUnderFence; c.small {
		return j.verifyStructure(ctx)
	}
	took, err := j.compareAsOfOneMoment(ctx)
	if err != nil {
		return err
	}
	c.final = took <= j.cfg.VerifyPause
	for pass, inTime := 0, true; inTime && !c.final && pass < maxPasses; pass++ {
		limit := j.cfg.VerifyPause
		if took > longPass*limit && j.cfg.Rate == 0 {
			limit = took / 2
		}
		if time.Duration(c.rows)*passPerRow > limit {
			break
		}
		if took, inTime, err = j.pass(ctx, limit); err != nil {
			return err
		}
		c.final = inTime && took <= j.cfg.VerifyPause
	}
	if !c.final {
		j.eventf(progress.TooLarge, "too large to compare its last writes under the fence within %s: compared as of a moment ago", j.cfg.VerifyPause)
	}
	return j.catchUp(ctx)
}

// The last changes of a large shard are compared before its cutover maxPasses times at most. A pass that takes longer than it may under
// the fence helps only after one that took longPass times as long, since which much has changed; with a rate the hosts are spared it. A pass reads all rows to find those that have
// changed, which takes passPerRow each at least: one that is sure to take too long is not begun.
const (
	maxPasses  = 4
	longPass   = 20
	passPerRow = 50 * time.Nanosecond
)

// pass compares what has changed since all rows were compared, or since the pass before, and returns how long that took. It gives up
// after limit.
func (j *job) pass(ctx context.Context, limit time.Duration) (took time.Duration, inTime bool, err error) {
	source, target, err := j.snapshots(ctx)
	defer func() { session.Close(ctx, source, target) }()
	if err != nil {
		return 0, false, err
	}
	for _, conn := range []*pgx.Conn{source, target} {
		if err := session.Run(ctx, conn, fmt.Sprintf("SET LOCAL statement_timeout = %d", max(1, limit.Milliseconds()))); err != nil {
			return 0, false, err
		}
	}
	took, err = j.compareTimed(ctx, source, target, j.comparison.seen)
	switch {
	case session.Code(err) == "57014" && ctx.Err() == nil:
		return limit, false, nil
	case err != nil:
		return 0, false, err
	}
	j.eventf(progress.ComparedLast, "compared the last changes in %s", took.Round(time.Millisecond))
	return took, true, nil
}

// compareTimed compares rows in transactions that see the same, and returns how long that took.
func (j *job) compareTimed(ctx context.Context, source, target *pgx.Conn, since [2]string) (time.Duration, error) {
	began := time.Now()
	var err error
	if j.cfg.Rate > 0 && since == [2]string{} {
		err = j.compareSums(ctx,
			func(ctx context.Context) ([]rows.Sum, error) {
				return rows.Paced(ctx, source, j.Schema, j.Schema, rows.Logged)
			},
			func(ctx context.Context) ([]rows.Sum, error) {
				return rows.Paced(ctx, target, j.copied(), j.Schema, rows.Logged)
			})
	} else {
		err = j.compare(ctx, source, target, rows.Logged, since)
	}
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, j.saw(ctx, source, target)
}

// saw notes the snapshots as of which the rows are known to be the same.
func (j *job) saw(ctx context.Context, source, target *pgx.Conn) error {
	for i, conn := range []*pgx.Conn{source, target} {
		if err := conn.QueryRow(ctx, `SELECT pg_current_snapshot()::text`).Scan(&j.comparison.seen[i]); err != nil {
			return err
		}
	}
	return nil
}

// snapshots returns sessions in transactions that see the same rows on both sides.
func (j *job) snapshots(ctx context.Context) (source, target *pgx.Conn, err error) {
	if source, target, err = session.OpenBoth(ctx, j.src, j.dst); err != nil {
		return source, target, err
	}
	err = j.retry(ctx, func(ctx context.Context, lockTimeout time.Duration) error {
		return j.cutOnce(ctx, lockTimeout, locks.Tables(j.Schema, "SHARE"), func(ctx context.Context, _ pgx.Tx) error {
			for _, conn := range []*pgx.Conn{source, target} {
				const begin = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1"
				if err := session.Run(ctx, conn, begin); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return source, target, err
}

// verifyStructure compares the structures of both sides. [job.unchanged] finds later changes.
func (j *job) verifyStructure(ctx context.Context) (err error) {
	if j.comparison.catalogs, err = structure.ReadCatalogs(ctx, j.from, j.Schema, j.countsViews()); err != nil {
		return err
	}
	if j.back != nil {
		return j.verifyUnchanged(ctx)
	}
	identities, err := j.stream().Identities(ctx)
	if err != nil {
		return err
	}
	return j.compareStructures(ctx, identities, true)
}

// compareStructures compares the structures of both sides, except the replica identities that the move has changed and what the cutover makes. The error is a
// [StructureError]. The target has keys and indexes once its rows are copied.
func (j *job) compareStructures(ctx context.Context, identities map[string]string, copied bool) error {
	without := structure.Without{Identities: identities, Keys: !copied, UnloggedKeys: !j.Offline}
	differences, err := structure.Compare(ctx, j.src, j.dst, j.cfg.Map, j.Shard, without)
	if err == nil && len(differences) > 0 {
		return &StructureError{Differences: differences}
	}
	return err
}

// compareAsOfOneMoment compares structures and rows. Writers wait until the target has all that they have written and both sides have snapshots, and
// go on while these are compared. It returns how long that took.
func (j *job) compareAsOfOneMoment(ctx context.Context) (time.Duration, error) {
	source, target, err := j.snapshots(ctx)
	defer func() { session.Close(ctx, source, target) }()
	if err != nil {
		return 0, err
	}
	j.event(progress.Comparing)
	comparing, stop := context.WithCancel(ctx)
	defer stop()
	structures := make(chan error, 1)
	go func() { // in other sessions than the rows
		err := j.verifyStructure(ctx)
		if err != nil {
			stop()
		}
		structures <- err
	}()
	took, err := j.compareTimed(comparing, source, target, [2]string{})
	if differ := <-structures; differ != nil {
		return 0, differ
	}
	if err == nil {
		j.event(progress.Compared)
	}
	return took, err
}
