// Package checks finds beforehand what keeps a shard from being moved, or what one should know before it is. It changes
// nothing. What it needs of a host is read by SQL, as a role that need not be a superuser; what cannot be known that way, such
// as the free space on a disk, is said to be unknown.
package checks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Found is what was found on one host.
type Found struct {
	Problems []string // why the shard cannot be moved, each with what was expected
	Notes    []string // what one should know
}

func (f *Found) problem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

func (f *Found) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// take adds the rows of a query that has two columns: whether a row is a problem or a note, and its text.
func (f *Found) take(ctx context.Context, conn *pgx.Conn, query string, args ...any) error {
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

// The differences of clocks from which on they are worth a word, and keep a shard from moving: IDs of a clock that is far
// ahead stay ahead for ever.
const (
	clockNote    = time.Second
	clockProblem = time.Minute
)

// Clocks compares the clocks of two hosts, by way of this machine's: as precisely as a round trip takes.
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
