// Package claim keeps a shard for one mover: by the shard's lock, and by rows in the ledger that name the mover's session.
//
// A mover enters a move into the source's ledger under the lock that migrations take, which only the shard's owner can. From then on the row keeps
// migrations out, also when the mover dies, until the move is resumed or aborted. It names the session that works on the move, so that two movers
// do not. The advisory lock of the shard, on both hosts, keeps out kiloshard exec. Any role can take it, so it counts only where its
// holder may create in the shard's schema.
package claim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/sql"
)

// The errors of a shard that something else works on.
var (
	ErrUnderWay    = errors.New("a move of the shard is under way")
	ErrBusy        = errors.New("the shard is being migrated, or moved by another program")
	errMoverAtWork = fmt.Errorf("%w: another mover is at work on it: interrupt that mover first", ErrBusy)
)

// Wait is how long a mover waits for a shard's lock, which a mover that was killed a moment ago may still have. Tests wait less.
var Wait = 10 * time.Second

// Lock takes a shard's advisory lock for the session. It polls, since a statement that waits holds a snapshot. The error is [ErrBusy] after [Wait].
func Lock(ctx context.Context, conn *pgx.Conn, turn sql.ShardTurn) error {
	return named(ctx, conn, turn, wait.Until(ctx, Wait, wait.Slowly, ErrBusy, func() (bool, error) {
		got, err := session.Last(ctx, conn, turn.Mark())
		return got == "true", err
	}))
}

// named adds the lock's holders to [ErrBusy].
func named(ctx context.Context, conn *pgx.Conn, turn sql.ShardTurn, err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	holders, asked := session.Last(ctx, conn, turn.Holders())
	switch {
	case asked == nil && strings.Contains(holders, "("+session.Mover+","):
		return errMoverAtWork
	case asked == nil && holders != "":
		return fmt.Errorf("%w: %s", err, holders)
	}
	return err
}

// Enter adds a row to the ledger of a host, unless it is there. side is that of the host, such as [ledger.SourceSide]. The error is [ErrUnderWay] if the ledger has
// another move of the shard that has not ended.
func Enter(ctx context.Context, conn *pgx.Conn, m ledger.Move, side string) error {
	const query = `
		INSERT INTO kiloshard.moves (id, shard, schema, side, source, target, step, who, offline, back, returns, split, began, stepped, mover)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, nullif($11, ''), nullif($12, ''), clock_timestamp(), clock_timestamp(), pg_backend_pid()) ON CONFLICT (id) DO NOTHING`
	_, err := conn.Exec(ctx, query, m.ID, m.Shard, m.Schema, side, m.Source, m.Target, m.Step, m.Who, m.Offline, m.Back, m.Returns, m.Split)
	if session.Code(err) == "23505" { // of the index on the shard
		host := m.Source
		if side == ledger.TargetSide {
			host = m.Target
		}
		return fmt.Errorf("%w: the ledger of %s has a move of the shard under way; see kiloshard move status", ErrUnderWay, host)
	}
	return err
}

// EnterAll adds the rows of moves to the source's ledger, in one transaction that holds the shards' locks: no migration runs then, and none
// begins later. The error is [ErrBusy] after [Wait].
func EnterAll(ctx context.Context, source *pgx.Conn, moves ...ledger.Move) error {
	turn := moves[0].Turn()
	err := wait.Until(ctx, Wait, wait.Slowly, ErrBusy, func() (bool, error) {
		got, err := "true", session.Run(ctx, source, "BEGIN")
		for _, m := range moves {
			if err != nil || got != "true" {
				break
			}
			turn = m.Turn()
			if got, err = session.Last(ctx, source, turn.Try()); err == nil && got == "true" {
				err = Enter(ctx, source, m, ledger.SourceSide)
			}
		}
		end := "COMMIT"
		if err != nil || got != "true" {
			end = "ROLLBACK"
		}
		if ended := session.Run(ctx, source, end); err == nil {
			err = ended
		}
		return got == "true", err
	})
	return named(ctx, source, turn, err)
}

// Take makes the session the mover of moves that are in the source's ledger. Another mover keeps them as long as its session lives: the error is [ErrBusy] after
// [Wait].
func Take(ctx context.Context, source *pgx.Conn, ids ...string) error {
	return wait.Until(ctx, Wait, wait.Slowly, errMoverAtWork, func() (bool, error) {
		const query = `
			UPDATE kiloshard.moves m SET mover = pg_backend_pid() WHERE id = ANY ($1) AND side = 'source' AND NOT EXISTS (
				SELECT FROM pg_stat_activity a WHERE a.pid = m.mover AND a.pid <> pg_backend_pid() AND a.datname = current_database()
					AND a.application_name = '` + session.Mover + `' AND has_schema_privilege(a.usesysid, 'kiloshard', 'create'))`
		tag, err := source.Exec(ctx, query, ids)
		return tag.RowsAffected() == int64(len(ids)), err
	})
}

// Retake makes a new session the mover of m, or of all moves of m's promotion, in place of a session that was lost.
func Retake(ctx context.Context, source *pgx.Conn, m ledger.Move) error {
	if m.Split == "" {
		if err := Lock(ctx, source, m.Turn()); err != nil {
			return err
		}
	}
	ids, err := session.Texts(ctx, source, `SELECT id FROM kiloshard.moves WHERE (id = $1 OR split = $2) AND side = 'source'`, m.ID, m.Split)
	if err != nil {
		return err
	}
	return Take(ctx, source, ids...)
}
