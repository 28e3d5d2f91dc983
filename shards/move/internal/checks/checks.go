// Package checks finds the reasons why a shard cannot move, and what to know before it moves. It changes nothing. It reads
// everything by SQL, as a role that need not be a superuser, so it does not know, for example, the free space on a disk.
package checks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Found has the results of checks on one host.
type Found struct {
	Problems []string // why the shard cannot be moved, each with what was expected
	Notes    []string // what to know before the move
}

func (f *Found) problem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

func (f *Found) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// query adds the rows of a query with two columns: whether the row is a problem (or else a note), and its text.
func (f *Found) query(ctx context.Context, conn *pgx.Conn, query string, args ...any) error {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	var problem bool
	var text string
	_, err = pgx.ForEachRow(rows, []any{&problem, &text}, func() error {
		if problem {
			f.problem("%s", text)
		} else {
			f.note("%s", text)
		}
		return nil
	})
	return err
}

// The differences of clocks that are a note, and that are a problem: IDs of a clock that is far ahead stay ahead forever.
const (
	clockNote    = time.Second
	clockProblem = time.Minute
)

// Clocks compares the clocks of two hosts with this machine's, so a round trip limits the precision.
func Clocks(ctx context.Context, source, target *pgx.Conn) (Found, error) {
	var f Found
	var ahead [2]time.Duration
	var trip time.Duration
	for i, conn := range []*pgx.Conn{source, target} {
		var now time.Time
		began := time.Now()
		if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
			return f, err
		}
		took := time.Since(began)
		trip += took
		ahead[i] = now.Sub(began.Add(took / 2))
	}
	difference := ahead[1] - ahead[0]
	which := "ahead of"
	if difference < 0 {
		difference, which = -difference, "behind"
	}
	difference -= trip / 2
	switch text := fmt.Sprintf("its clock is %s %s the source's", difference.Round(100*time.Millisecond), which); {
	case difference >= clockProblem:
		f.problem("%s: expected less than %s, since IDs are made of it", text, clockProblem)
	case difference >= clockNote && which == "behind":
		f.note("%s: until it has caught up with the IDs that were made, next_id() sleeps for a moment before each ID", text)
	case difference >= clockNote:
		f.note("%s: IDs made there look as much later", text)
	}
	return f, nil
}
