package router

import (
	"context"

	"github.com/kiloshard/kiloshard/router/internal/replica"
)

// Position is how far a host has come in its write-ahead log. The zero Position is before everything.
//
// As a text it can be kept where the next request of the same user finds it, such as in a cookie: it says nothing but
// the number of the host's cluster, its timeline, and the place in the log. A text from a stranger does no harm: the
// worst that it can do is to send reads to the primary.
type Position = replica.Position

// Position returns how far the primary has come, with whatever was committed there before the call. A read with it as
// [Reads.After] sees all of that:
//
//	_, err := shard.Exec(ctx, `update photos set title = $1 where id = $2`, title, id)
//	at, err := shard.Position(ctx)
//	…
//	shard.ReadOnly(router.Reads{After: at}).QueryRow(ctx, `select title from photos where id = $1`, id)
//
// Call it after the COMMIT: before, the commit itself is not in the log. It is a round trip. The position is that of
// the log in memory (pg_current_wal_insert_lsn), not of what is on the disk: with synchronous_commit off, a transaction is
// visible to all before it is on the disk, or on its way to a replica.
//
// The error is one of a [Shard].
func (s Shard) Position(ctx context.Context) (Position, error) {
	return replica.ScanPosition(s.QueryRow(ctx, replica.PositionQuery))
}
