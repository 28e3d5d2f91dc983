package buffered

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

// aheadLimit is how much of an answer a reader has in memory, in bytes, before its caller gets it.
const aheadLimit = 1 << 20

// InMemory reports whether rows are all in memory, so that they hold no connection.
func InMemory(rows pgx.Rows) bool {
	_, whole := rows.(*answerRows)
	return whole
}

// ReadAhead reads rows into memory, up to their end or aheadLimit, unless they are there. Of more, the rest holds its
// connection. It calls wrote.Writes if the statement turns out to write in one of these, unless wrote is nil.
func ReadAhead(host *Types, live pgx.Rows, wrote interface{ Writes() }) (pgx.Rows, error) {
	if InMemory(live) {
		return live, nil
	}
	a := New(slices.Clone(live.FieldDescriptions())) // the connection uses them again
	for a.Size() < aheadLimit {
		if !live.Next() {
			a.Tag = live.CommandTag()
			return a.Rows(host), live.Err()
		}
		a.Add(live.RawValues())
	}
	head := a.Rows(host)
	return &aheadRows{Rows: head, head: head, live: live, wrote: wrote}, nil
}

// aheadRows are rows of which the first are in memory.
type aheadRows struct {
	pgx.Rows // the head, then the live ones
	head     *answerRows
	live     pgx.Rows
	wrote    interface{ Writes() }
}

func (r *aheadRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	if r.Rows != r.live {
		if r.head.Err() != nil || r.head.read < r.head.count {
			return false
		}
		r.Rows = r.live
		if r.live.Next() {
			return true
		}
	}
	r.Close()
	return false
}

func (r *aheadRows) Close() {
	r.head.Close()
	r.live.Close()
	if failure.SQLState(r.live.Err()) == "25006" && r.wrote != nil {
		r.wrote.Writes()
	}
}

func (r *aheadRows) Err() error {
	if err := r.head.Err(); err != nil {
		return err
	}
	err := r.live.Err()
	if failure.SQLState(err) == "25006" {
		return fmt.Errorf("%w: the statement was run as a read, and wrote after the first %d kB of its answer; from now on it runs as a write", err, aheadLimit>>10)
	}
	return err
}

func (r *aheadRows) CommandTag() pgconn.CommandTag                { return r.live.CommandTag() }
func (r *aheadRows) FieldDescriptions() []pgconn.FieldDescription { return r.head.fields }
func (r *aheadRows) Conn() *pgx.Conn                              { return r.live.Conn() }
func (r *aheadRows) TypeMap() *pgtype.Map                         { return r.live.TypeMap() }

// Scan closes all of it after an error.
func (r *aheadRows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil && r.Rows != r.live {
		r.Close()
	}
	return err
}
