package move

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// catchUp returns when a marker reaches the target within [Config.MaxLag].
func (j *job) catchUp(ctx context.Context) error {
	if err := j.dropUnloggedKeys(ctx); err != nil {
		return err
	}
	for {
		began := time.Now()
		if err := j.mark(ctx, 0); err != nil {
			return err
		}
		if lag := time.Since(began); lag > j.cfg.MaxLag {
			j.report(progress.Event{Kind: progress.Behind, What: fmt.Sprintf("behind by %s", lag.Round(time.Millisecond)), Lag: lag})
			continue
		}
		j.event(progress.CaughtUp)
		return nil
	}
}

// mark returns when the target has all that was committed on the source before. The error wraps [replicate.ErrLate] after limit, 0 for none.
func (j *job) mark(ctx context.Context, limit time.Duration) error {
	if j.back != nil {
		return j.drain(ctx)
	}
	return j.stream().Mark(ctx, limit)
}
