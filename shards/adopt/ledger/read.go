package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql/special"
)

// Querier is a session or a transaction of one.
type Querier interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// ErrNone says that nobody adopts the database.
var ErrNone = errors.New("this database is not being adopted: expected one on which kiloshard adopt views has run")

// Read returns what the ledger says, read in a transaction of its own, or [ErrNone].
func Read(ctx context.Context, conn *pgx.Conn) (s *State, err error) {
	err = inTransaction(ctx, conn, func(tx pgx.Tx) error {
		s, err = ReadIn(ctx, tx)
		return err
	})
	return s, err
}

// ReadIn is [Read] in the caller's transaction. It refuses a ledger of others before it reads a row.
func ReadIn(ctx context.Context, tx pgx.Tx) (*State, error) {
	there, err := isThere(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, ErrNone
	}
	for _, name := range []string{"adoption", "shards", "old_writes", "granted", "history"} {
		if _, err := tx.Exec(ctx, special.Refuse(Schema+"."+name)); err != nil {
			return nil, err
		}
	}
	s := &State{}
	const adoption = `select gate, shards, strategy, file, structure, started_at from kiloshard_adopt.adoption`
	if err := tx.QueryRow(ctx, adoption).Scan(&s.Gate, &s.Shards, &s.Strategy, &s.File, &s.Structure, &s.Started); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `select shard, stage, views, changed_at from kiloshard_adopt.shards order by shard`)
	if err != nil {
		return nil, err
	}
	s.All, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Shard])
	return s, err
}

// Event is something that a command did.
type Event struct {
	At   time.Time `json:"at"`
	Gate Gate      `json:"gate"`
	What string    `json:"what"`
	By   string    `json:"by"` // the role
}

// History returns what commands did, the oldest first.
func History(ctx context.Context, q Querier) ([]Event, error) {
	rows, err := q.Query(ctx, `select at, gate, what, by::text from kiloshard_adopt.history order by at`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Event])
}

// number keeps a shard's number a number in statements.
func number(n shards.Number) int32 { return int32(n) }
