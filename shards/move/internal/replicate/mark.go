package replicate

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// ErrLate says that the target did not show a marker in time.
var ErrLate = errors.New("the target does not keep up")

// Mark writes a marker on the source and waits until the target has it: then the target has all that was committed before.
// The error is [ErrLate] after limit, 0 for none.
func (s Stream) Mark(ctx context.Context, limit time.Duration) error {
	attempt := time.Now().UnixNano()
	if _, err := s.From.Exec(ctx, `INSERT INTO kiloshard.move_markers VALUES ($1, $2)`, s.ID, attempt); err != nil {
		return err
	}
	slot, worker := slotWatch{Stream: s}, workerWatch{Stream: s}
	return wait.Until(ctx, limit, wait.Quickly, ErrLate, func() (there bool, err error) {
		if limit == 0 { // while writers wait there is no time for it
			err := slot.look(ctx)
			if err == nil {
				err = worker.look(ctx)
			}
			if err != nil {
				return false, err
			}
		}
		err = s.To.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.move_markers WHERE move = $1 AND attempt = $2)`, s.ID, attempt).Scan(&there)
		return there, err
	})
}

// DropMarkers removes the markers of a move, or of a promotion.
func DropMarkers(ctx context.Context, conn *pgx.Conn, of string) error {
	_, err := conn.Exec(ctx, `DELETE FROM kiloshard.move_markers WHERE move = $1`, of)
	return err
}
