package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
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
	differences, count, err := rows.Compare(ctx, j.Source, j.Target, ofSource, ofTarget)
	if err != nil {
		return err
	}
	j.comparison.rows = count
	if len(differences) > 0 {
		return &RowsError{Differences: differences}
	}
	return nil
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

// compareWithFenced compares a shard that has moved with its old schema.
func (j *job) compareWithFenced(ctx context.Context) error {
	var there bool
	var carried string
	const query = `SELECT to_regnamespace($2) IS NOT NULL, coalesce(carried, '') FROM kiloshard.moves WHERE id = $1`
	if err := j.from.QueryRow(ctx, query, j.ID, j.OldSchema()).Scan(&there, &carried); err != nil {
		return err
	}
	if carried == "" && j.Split != "" { // it is a copy of a shard that has stayed
		return nil
	}
	if !there || carried == "" {
		return fmt.Errorf("nothing to compare: schema %s is not on %s any more", j.OldSchema(), j.Source)
	}
	j.event(progress.Comparing)
	e := &RowsError{}
	err := rows.Unchanged(ctx, j.from, j.OldSchema(), j.to, j.Schema, carried, func(table string, unknown int64) {
		e.Differences = append(e.Differences, fmt.Sprintf("%s: %d rows on %s that nobody has changed since the move are not those of %s", table, unknown, j.Target, j.Source))
	})
	switch {
	case err != nil:
		return err
	case len(e.Differences) > 0:
		return e
	}
	j.event(progress.Compared)
	return nil
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
