package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// errMarkerLate says that the target did not show a marker in time.
var errMarkerLate = errors.New("the target does not keep up")

// catchUp returns when a marker takes no longer to the target than it may.
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
			j.tell(Event{What: fmt.Sprintf("behind by %s", lag.Round(time.Millisecond)), Lag: lag})
			continue
		}
		j.event("caught up")
		return nil
	}
}

// mark writes a marker on the source and waits until the target has it: it then has all that was committed before.
// It returns errMarkerLate after limit, 0 for none.
func (j *job) mark(ctx context.Context, limit time.Duration) error {
	if j.back != nil {
		return j.drain(ctx)
	}
	attempt := time.Now().UnixNano()
	if _, err := j.from.Exec(ctx, `INSERT INTO kiloshard.move_markers VALUES ($1, $2)`, j.ID, attempt); err != nil {
		return err
	}
	slot, worker := slotWatch{job: j}, workerWatch{job: j}
	return wait.Until(ctx, limit, wait.Quickly, errMarkerLate, func() (there bool, err error) {
		if limit == 0 { // else nobody has time for it
			err := slot.look(ctx)
			if err == nil {
				err = worker.look(ctx)
			}
			if err != nil {
				return false, err
			}
		}
		err = j.to.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.move_markers WHERE move = $1 AND attempt = $2)`, j.ID, attempt).Scan(&there)
		return there, err
	})
}

// dropMarkers removes the markers of a move, or of a promotion.
func dropMarkers(ctx context.Context, conn *pgx.Conn, of string) error {
	_, err := conn.Exec(ctx, `DELETE FROM kiloshard.move_markers WHERE move = $1`, of)
	return err
}
