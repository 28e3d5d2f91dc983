package session

import (
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// aheadLimit is how much of an answer a reader has in memory, in bytes, before its caller gets it.
const aheadLimit = 1 << 20

// InMemory reports whether rows are all in memory, so that they hold no connection.
func InMemory(rows pgx.Rows) bool {
	_, whole := rows.(*answerRows)
	return whole
}

// ReadAhead reads rows into memory, up to their end or aheadLimit, unless they are there. Of more, the rest holds its
// connection.
func ReadAhead(h *Shard, live pgx.Rows) (pgx.Rows, error) {
	if InMemory(live) {
		return live, nil
	}
	a := &Answer{fields: slices.Clone(live.FieldDescriptions())} // the connection uses them again
	for a.size() < aheadLimit {
		if !live.Next() {
			a.Tag = live.CommandTag()
			return a.Rows(h), live.Err()
		}
		a.add(live.RawValues())
	}
	head := a.Rows(h)
	return &aheadRows{Rows: head, head: head, live: live}, nil
}

// aheadRows are rows of which the first are in memory.
type aheadRows struct {
	pgx.Rows // the head, then the live ones
	head     *answerRows
	live     pgx.Rows
}

func (r *aheadRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	if r.Rows == r.live || r.head.Err() != nil || r.head.read < r.head.count {
		return false
	}
	r.Rows = r.live
	return r.live.Next()
}

func (r *aheadRows) Close() {
	r.head.Close()
	r.live.Close()
}

func (r *aheadRows) Err() error {
	if err := r.head.Err(); err != nil {
		return err
	}
	return r.live.Err()
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
