// Package changes applies changes to the tables of one schema to a copy of the schema, under another name on another host.
//
// A subscription cannot do that: it finds a table by its name on the publisher. The old host keeps a shard that has
// moved under another name, behind the fence, while changes are applied to it. So [Stream.Drain] reads the slot by SQL,
// and applies whole transactions in the order of their commits. The transaction that applies them also records the
// position that it has reached, so each change is applied once, even if a process is killed.
package changes

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// LSN is a position in the WAL of the host that the changes come from.
type LSN uint64

// ParseLSN reads a position as Postgres writes it, such as 16/B374D848.
func ParseLSN(text string) (LSN, error) {
	var high, low uint32
	if _, err := fmt.Sscanf(text, "%X/%X", &high, &low); err != nil {
		return 0, fmt.Errorf("%q is no position in the WAL: expected one such as 16/B374D848", text)
	}
	return LSN(high)<<32 | LSN(low), nil
}

// String writes a position as Postgres does.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) } //nolint:gosec // the two halves

// Stream is the changes of a publication, and the copy to which they are applied.
type Stream struct {
	From        *pgx.Conn
	To          *pgx.Conn // may set session_replication_role
	Slot        string    // on From, of pgoutput
	Publication string    // its tables are of one schema
	Original    string    // the schema on From
	Schema      string    // of the copy

	// Applied returns the position that the copy has reached: it has all transactions that were committed before. It
	// keeps other streams from applying changes until the transaction ends.
	Applied func(context.Context, pgx.Tx) (LSN, error)
	Note    func(context.Context, pgx.Tx, LSN) error // records the position that the copy has reached
}

// The limits of one transaction of the copy, and of one round trip to it, in changes. A transaction of the source is
// never split.
const (
	passChanges  = 20_000
	batchChanges = 500
)

// ErrInUse means that another session reads the slot.
var ErrInUse = errors.New("another session reads the slot")

// Error means that a change cannot be applied, now or later: the copy differs from the original.
type Error struct{ Err error }

func (e *Error) Error() string { return "a change cannot be applied: " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Drain applies all changes that were on From's disk when it was called, and advances the slot past them. The error is
// ErrInUse if another session reads the slot, and an [Error] if the copy does not accept a change.
func (s Stream) Drain(ctx context.Context) error {
	var upto string
	if err := s.From.QueryRow(ctx, `SELECT pg_current_wal_flush_lsn()::text`).Scan(&upto); err != nil {
		return err
	}
	for {
		reached, whole, err := s.pass(ctx, upto)
		if err != nil {
			return inUse(err)
		}
		to := upto
		if !whole {
			to = reached.String()
		}
		const advance = `SELECT pg_replication_slot_advance(slot_name, $2::pg_lsn)::text FROM pg_replication_slots WHERE slot_name = $1 AND confirmed_flush_lsn < $2::pg_lsn`
		if _, err := s.From.Exec(ctx, advance, s.Slot, to); err != nil {
			return inUse(err)
		}
		if whole {
			return nil
		}
	}
}

func inUse(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55006" {
		return ErrInUse
	}
	return err
}

// pathTo returns a statement for the rest of a transaction: names of objects in a schema are then written and read
// without the schema, unless Postgres has an object of the same name.
func pathTo(schema string) string {
	return "SET LOCAL search_path = pg_catalog, " + pgx.Identifier{schema}.Sanitize() + ", pg_temp"
}

// pass applies some transactions, and returns the end of the last one, and whether they were all.
func (s Stream) pass(ctx context.Context, upto string) (reached LSN, whole bool, err error) {
	tx, err := s.To.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, DeferrableMode: pgx.NotDeferrable})
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// No triggers and foreign keys: the rows have passed them on the other host.
	if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
		return 0, false, err
	}
	a := &applier{schema: s.Schema, tx: tx, relations: map[uint32]*relation{}}
	if a.done, err = s.Applied(ctx, tx); err != nil {
		return 0, false, err
	}
	if err := a.readColumns(ctx); err != nil {
		return 0, false, err
	}
	// A value that names an object of the schema, such as a regclass, is written and read without the schema.
	from, err := s.From.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, DeferrableMode: pgx.NotDeferrable})
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = from.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := from.Exec(ctx, pathTo(s.Original)); err != nil {
		return 0, false, err
	}
	const peek = `SELECT data FROM pg_logical_slot_peek_binary_changes($1, $2::pg_lsn, $3, 'proto_version', '1', 'publication_names', $4)`
	rows, err := from.Query(ctx, peek, s.Slot, upto, passChanges, s.Publication)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	count := 0
	for ; rows.Next(); count++ {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return 0, false, err
		}
		if err := a.apply(ctx, data); err != nil {
			return 0, false, err
		}
	}
	if err := rows.Err(); err != nil {
		return 0, false, err
	}
	if err := a.flush(ctx); err != nil {
		return 0, false, err
	}
	if a.end > a.done {
		if err := s.Note(ctx, tx, a.end); err != nil {
			return 0, false, err
		}
	}
	return max(a.end, a.seen), count < passChanges, tx.Commit(ctx)
}
