package migrate

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/sql"
)

// recorded is the column that says whether the statement recorded a version.
const recorded = "kiloshard_recorded"

// outcome is the server's answer to a script.
type outcome struct {
	completed []completed
	err       error
}

// completed is one statement that was completed.
type completed struct {
	tag      string // such as "CREATE TABLE" and "UPDATE 1"
	recorded bool   // it recorded a file's version
}

// send runs a script in one round trip.
func (s *session) send(ctx context.Context, text string) outcome {
	var out outcome
	results := s.conn.Exec(ctx, text)
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
	out.err = results.Close()
	return out
}

// unread reports whether the server refused the script as a whole: it parses all of a message before it runs the first
// statement.
func (o outcome) unread() bool {
	var pg *pgconn.PgError
	return len(o.completed) == 0 && errors.As(o.err, &pg)
}

// moved reports whether the shard was not at the expected version.
func (o outcome) moved() bool {
	var pg *pgconn.PgError
	return errors.As(o.err, &pg) && pg.Code == sql.ShardMoved
}

// busy reports whether another session had the shard's lock.
func (o outcome) busy() bool {
	var pg *pgconn.PgError
	return errors.As(o.err, &pg) && pg.Code == sql.ShardBusy
}

// applied returns how many files were committed with their versions, and whether a file ended its own transaction: a
// commit then comes without a recorded version before it.
func (o outcome) applied() (files int, ended bool) {
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
func (o outcome) lastTransaction() int {
	for i := len(o.completed) - 1; i >= 0; i-- {
		if o.completed[i].tag == "BEGIN" {
			return len(o.completed) - i
		}
	}
	return 0
}
