package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrPooled says that a new connection leads to a pooler, for which it has to be made again in another mode.
var ErrPooled = errors.New("there is a pooler before the server")

// ErrNoAnswer says that the server broke the protocol.
var ErrNoAnswer = errors.New("the server gave no answer to a statement")

var (
	errBatchBegin         = errors.New("a batch with Batch.BeginTx cannot be sent to a shard: use BeginTx of the shard, and SendBatch of its transaction")
	errCopyIn             = errors.New("COPY FROM STDIN as SQL gets no rows: use CopyFrom")
	errListen             = errors.New("LISTEN needs a connection of its own, not one that is shared")
	errProcedure          = errors.New("CALL and DO could commit and go on outside the shard: use Exec or a transaction")
	errProcedureRewritten = errors.New("CALL and DO could commit and go on outside the shard: where a QueryRewriter makes them, use a transaction")
	errTxLeft             = errors.New("the SQL left a transaction open, which has been rolled back: use Begin")
	errTxEnded            = errors.New("the transaction was ended by a statement of its own; use Commit or Rollback")
)

// entryError says that an entry failed, so that nothing that came after it has run.
type entryError struct{ cause error }

func (e *entryError) Error() string { return e.cause.Error() }
func (e *entryError) Unwrap() error { return e.cause }

// pathError says that an entry failed because the path of the session was not what it is before it.
type pathError struct{ cause error }

func (e *pathError) Error() string {
	return "a statement that was sent together with this one has changed search_path, or has ended the transaction: nothing after it was run"
}
func (e *pathError) Unwrap() error { return e.cause }

// EntryFailed returns the error of an entry.
func (s *Session) EntryFailed(sc Scope, err error) error {
	if err == nil || failure.SQLState(err) == "" || failure.EndsConn(err) || isUnknown(err) {
		return err
	}
	if failure.SQLState(err) == mismatch {
		delete(s.entered, sc.path) // the next entry, which is a first one, says what is wrong
	}
	return &entryError{explainEntry(sc, err)}
}

// missingRight is the function of the server that refuses the use of an object to a role.
const missingRight = "aclcheck_error"

// mismatch is the SQLSTATE of an entry that found another path than the base path, or another schema than the first entry.
const mismatch = "22023"

// explainEntry puts the error of an entry into words: it fails by a path or a name that is none, by a division by zero, or
// outside a transaction block.
func explainEntry(sc Scope, err error) error {
	switch failure.SQLState(err) {
	case "42602", "25P01", mismatch:
		return &pathError{err}
	case "22012":
		return &pgconn.PgError{
			Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42501", Routine: missingRight,
			Message: fmt.Sprintf("permission denied for schema %s: the role has no USAGE on it", sc.schema),
		}
	}
	return err
}

// entryState returns the SQLSTATE with which an entry failed, empty if none did.
func entryState(err error) string {
	if err == nil {
		return ""
	}
	var failed *entryError
	if errors.As(err, &failed) {
		return failure.SQLState(failed.cause)
	}
	return ""
}

// EntryRefused reports whether an entry has failed because its shard is not there, or the role may not use it.
func EntryRefused(err error) bool {
	state := entryState(err)
	return state == "3F000" || state == "42501"
}

// PathMoved reports whether an entry failed because the path of the session was not the base path, or may have.
func PathMoved(err error) bool {
	state := entryState(err)
	return state == "42602" || state == mismatch
}

// withGrant adds what to do about a right that the role does not have on an object. Other errors have its code, too, and functions may raise
// it.
func withGrant(err error) error {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "42501" || pgErr.Routine != missingRight {
		return err
	}
	return fmt.Errorf("%w; kiloshard grant gives a role its rights on all shards", err)
}

// isUnknown reports whether the server does not know one of the router's prepared statements, which then has not run.
func isUnknown(err error) bool {
	if err == nil {
		return false
	}
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "26000" && strings.Contains(pgErr.Message, namePrefix)
}

// staleStates are the errors that can come from a prepared statement that was described before a table changed: its result
// has another shape (0A000), a type does not fit any more (42804, 42846, 42883, 42P18), an argument that is now a text was
// announced as a number (22P02), the type of an argument is gone (42704, XX000).
var staleStates = []string{"0A000", "22P02", "42704", "42804", "42846", "42883", "42P18", "XX000"}

// maybeStale reports whether an error can come from a prepared statement that is out of date.
func maybeStale(err error) bool {
	return slices.Contains(staleStates, failure.SQLState(err))
}

// TxLeft returns an error if what was sent by itself has left a transaction open on its connection.
func TxLeft(conn *pgx.Conn) error {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	return errTxLeft // the connection is closed
}

// orUnknown adds [failure.ErrOutcomeUnknown] to an error of a COMMIT that may have taken effect.
func orUnknown(err error) error {
	if err == nil || failure.NotCommitted(err) {
		return err
	}
	return fmt.Errorf("%w: %w", failure.ErrOutcomeUnknown, err)
}

// withMoved adds [failure.ErrMoved] to the error of an entry that says so.
func withMoved(err error) error {
	if entryState(err) != "3F000" {
		return err
	}
	return failure.Moved(err)
}

// OnFence reports whether a statement came upon the fence of a shard, or drew from next_id_seq when that was behind the fence: it makes IDs
// again if the fence comes down.
func OnFence(err error) bool {
	if err == nil {
		return false
	}
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == sql.ShardGone || pgErr.Code == sql.Refused && strings.Contains(pgErr.Message, "__moved_"))
}

// withFenced adds [failure.ErrMoved] to the error of a statement that came upon the fence of a shard, where all that it
// belongs to has had no effect: in a transaction, which the error has ended, or of a shard that is only read.
func withFenced(err error) error {
	if !OnFence(err) {
		return err
	}
	return failure.Moved(err)
}

// MayHaveMoved reports whether a statement may have failed because its shard has moved away between its entry, if it had one, and itself:
// it came upon the fence, upon nothing where something was, or upon a sequence that gives nothing any more. In a transaction that
// was begun before, an entry notices nothing of that either: until it takes a lock, Postgres has names mean what they did.
func MayHaveMoved(err error) bool {
	if entryState(err) != "" {
		return false
	}
	switch code := failure.SQLState(err); code {
	case sql.ShardGone, sql.Refused, "55000", "2200H":
		return true
	default:
		return strings.HasPrefix(code, "42") || strings.HasPrefix(code, "0A") || strings.HasPrefix(code, "3F")
	}
}
