package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrBusy says that somebody else migrates or moves a shard.
var ErrBusy = errors.New("the shard is being migrated, or moved by another program")

// errMoverAtWork is ErrBusy because of a mover that is alive.
var errMoverAtWork = fmt.Errorf("%w: another mover is at work on it: interrupt that mover first", ErrBusy)

// lockWait is how long a move waits for a shard's lock: a mover that was killed a moment ago may still have it.
// Tests wait less.
var lockWait = 10 * time.Second

// lockShard takes a shard's advisory lock for the session, by polling, since a statement that waits holds a snapshot. Anybody
// can take that lock, so it counts where its holder may create in the schema; what keeps others out for certain is enterAlone
// and claim.
func lockShard(ctx context.Context, conn *pgx.Conn, turn sql.ShardTurn) error {
	return named(ctx, conn, turn, wait.Until(ctx, lockWait, wait.Slowly, ErrBusy, func() (bool, error) {
		got, err := session.Last(ctx, conn, turn.Mark())
		return got == "true", err
	}))
}

// named adds to [ErrBusy] who works on the shard.
func named(ctx context.Context, conn *pgx.Conn, turn sql.ShardTurn, err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	holders, asked := session.Last(ctx, conn, turn.Holders())
	switch {
	case asked == nil && strings.Contains(holders, "(kiloshard move,"):
		return errMoverAtWork
	case asked == nil && holders != "":
		return fmt.Errorf("%w: %s", err, holders)
	}
	return err
}
