package entities

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/many"
)

// Counts are counters of a store's work since it was opened.
type Counts struct {
	repaired, filled, walked, checked, added, removed, taken atomic.Int64
}

// Stats are for metrics.
type Stats struct {
	Repaired int64 `json:"repaired"` // entities whose index rows a cleaner repaired because the writer did not finish
	Filled   int64 `json:"filled"`   // entities that [Store.Fill] has read
	Walked   int64 `json:"walked"`   // entities that a cleaner has compared with their index rows
	Checked  int64 `json:"checked"`  // index rows that Fill or a cleaner has compared with their entities
	Added    int64 `json:"added"`    // index rows added
	Removed  int64 `json:"removed"`  // index rows removed
	Taken    int64 `json:"taken"`    // entities found without a row in a unique index, because another entity has the value
}

// Stats returns counters of the store's work since it was opened.
func (s *Store) Stats() Stats {
	c := &s.counts
	return Stats{c.repaired.Load(), c.filled.Load(), c.walked.Load(), c.checked.Load(), c.added.Load(), c.removed.Load(), c.taken.Load()}
}

// Lag is the work that waits for a cleaner.
type Lag struct {
	Waiting int           // number of rows of entity_work that are older than writers usually need, also if a cleaner has them
	Oldest  time.Duration // age of the oldest of them
	Error   string        // of the last attempt for one of them
	// Ahead is how far a row is in the future: the clock of its host has stepped back, or another host has taken over whose
	// clock is behind. Cleaners take such rows at once.
	Ahead time.Duration
}

// Times are compared on one host only, that of the entity. A time in the future does not make a row wait.
var (
	isOld = fmt.Sprintf(`begun not between clock_timestamp() - interval '%d s' and clock_timestamp()`, int(grace.Seconds()))
	isDue = isOld + fmt.Sprintf(` and (taken is null or taken not between clock_timestamp() - interval '%d s' and clock_timestamp())`, int(lease.Seconds()))
)

// Lag queries all shards for the work that waits for a cleaner. If cleaners keep up, there is none, or it is a few seconds
// old.
func (s *Store) Lag(ctx context.Context) (Lag, error) {
	all, err := many.Collect(ctx, s.r, s.all(), many.Query[Lag]{
		SQL: `select count(*) filter (where ` + isOld + `), coalesce(extract(epoch from clock_timestamp() - min(begun)), 0)::float8,
				coalesce(max(error) filter (where ` + isOld + `), ''), coalesce(extract(epoch from max(begun) - clock_timestamp()), 0)::float8
			from entity_work`,
		Scan: func(row pgx.CollectableRow) (l Lag, err error) {
			var age, ahead float64
			err = row.Scan(&l.Waiting, &age, &l.Error, &ahead)
			if l.Waiting > 0 {
				l.Oldest, l.Ahead = max(0, seconds(age)), max(0, seconds(ahead))
			}
			return l, err
		},
	})
	var sum Lag
	for _, l := range all {
		sum.Waiting, sum.Oldest, sum.Ahead = sum.Waiting+l.Waiting, max(sum.Oldest, l.Oldest), max(sum.Ahead, l.Ahead)
		if l.Error != "" {
			sum.Error = l.Error
		}
	}
	return sum, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
