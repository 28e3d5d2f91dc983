package mapstore

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/connect"
)

// sqlState returns the code of what a server said, empty if none did.
func sqlState(err error) string {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isMissing tells of an error that the table, or its schema, is not there.
func isMissing(err error) bool {
	code := sqlState(err)
	return code == "42P01" || code == "3F000"
}

// isLost tells of an error that another has made the same version.
func isLost(err error) bool { return sqlState(err) == "23505" }

// isBroken tells of an error that another connection might not have: this one is lost, or leads to a server that only
// reads, now that another is the primary. That nobody could be connected to is no such error.
func isBroken(err error) bool {
	if isConnecting(err) || errors.As(err, new(*connect.Error)) || errors.Is(err, errNotPlain) {
		return false
	}
	code := sqlState(err)
	return code == "" || isGone(err) || code == "25006"
}

// isConnecting tells of an error that nobody could be connected to.
func isConnecting(err error) bool { return errors.As(err, new(*pgconn.ConnectError)) }

// isGone tells of a server that ends the connection.
func isGone(err error) bool {
	e := (*pgconn.PgError)(nil)
	return errors.As(err, &e) && (e.Severity != "ERROR" || strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P"))
}

// isPassing tells of an error that may be gone in a moment.
func isPassing(err error) bool {
	switch code := sqlState(err); {
	case code == "":
		return !errors.Is(err, errNotPlain)
	case code == "25006", strings.HasPrefix(code, "40"), strings.HasPrefix(code, "53"):
		return true
	}
	return isGone(err) && !strings.HasPrefix(sqlState(err), "28") && sqlState(err) != "3D000"
}

// isUnknown tells of an error of a statement that may have been done all the same: no answer came, or a server that went
// down, which may do so after a commit.
func isUnknown(err error) bool {
	if pgconn.SafeToRetry(err) || errors.As(err, new(*unsentError)) {
		return false
	}
	return sqlState(err) == "" || isGone(err)
}
