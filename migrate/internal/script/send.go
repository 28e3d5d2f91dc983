package script

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// recorded is the column that says whether the statement recorded a version.
const recorded = "kiloshard_recorded"

// Outcome is the server's answer to a script.
type Outcome struct {
	completed []completed
	Err       error
}

// completed is one statement that was completed.
type completed struct {
	tag      string // such as "CREATE TABLE" and "UPDATE 1"
	recorded bool   // it recorded a file's version
}

// Send runs the script in one round trip.
func (s Script) Send(ctx context.Context, on *session.Session) Outcome {
	var out Outcome
	results := on.Conn.Exec(ctx, s.text)
	for results.NextResult() {
		result := results.ResultReader()
		fields := result.FieldDescriptions()
		records := len(fields) == 1 && fields[0].Name == recorded
		done := false
		for result.NextRow() {
			done = records && string(result.Values()[0]) == "t"
		}
		if tag, err := result.Close(); err == nil {
			out.completed = append(out.completed, completed{tag.String(), done})
		}
	}
	out.Err = results.Close()
	return out
}

// Unread reports whether the server refused the script as a whole: it parses all of a message before it runs the first
// statement.
func (o Outcome) Unread() bool {
	var pg *pgconn.PgError
	return len(o.completed) == 0 && errors.As(o.Err, &pg)
}

// Moved reports whether the shard was not at the expected version.
func (o Outcome) Moved() bool {
	var pg *pgconn.PgError
	return errors.As(o.Err, &pg) && pg.Code == sql.ShardMoved
}

// Busy reports whether another session had the shard's lock.
func (o Outcome) Busy() bool {
	var pg *pgconn.PgError
	return errors.As(o.Err, &pg) && pg.Code == sql.ShardBusy
}

// Applied returns how many files were committed with their versions, and whether a file ended its own transaction: a
// commit then comes without a recorded version before it.
func (o Outcome) Applied() (files int, ended bool) {
	for i, c := range o.completed {
		if c.tag != "COMMIT" {
			continue
		}
		if i == 0 || !o.completed[i-1].recorded {
			return files, true
		}
		files++
	}
	return files, false
}

// lastTransaction returns how many statements were completed since the last transaction began,
// its BEGIN included.
func (o Outcome) lastTransaction() int {
	for i := len(o.completed) - 1; i >= 0; i-- {
		if o.completed[i].tag == "BEGIN" {
			return len(o.completed) - i
		}
	}
	return 0
}
