package pgstore

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// sqlState returns the SQLSTATE of an error, empty if it is not from a server.
func sqlState(err error) string {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isMissing reports whether the table, or its schema, is missing.
func isMissing(err error) bool {
	code := sqlState(err)
	return code == "42P01" || code == "3F000"
}

// isLost reports whether another change has made the same version.
func isLost(err error) bool { return sqlState(err) == "23505" }

// isBroken reports whether another connection might not have the error: this one is lost, or leads to a server that is
// read-only since another is the primary. A failure to connect is no such error.
func isBroken(err error) bool {
	if isConnecting(err) || errors.As(err, new(*connect.Error)) || errors.Is(err, errNotPlain) {
		return false
	}
	code := sqlState(err)
	return code == "" || isGone(err) || readOnly(code)
}

// readOnly reports whether a server takes no writes: a standby refuses them, and before them a transaction that may
// write.
func readOnly(code string) bool { return code == "25006" || code == "0A000" }

// isConnecting reports whether connecting failed.
func isConnecting(err error) bool { return errors.As(err, new(*pgconn.ConnectError)) }

// isGone reports whether the server ended the connection.
func isGone(err error) bool {
	e := (*pgconn.PgError)(nil)
	return errors.As(err, &e) && (e.Severity != "ERROR" || strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P"))
}

// isPassing reports whether another attempt may succeed soon.
func isPassing(err error) bool {
	switch code := sqlState(err); {
	case code == "":
		return !errors.Is(err, errNotPlain) && !errors.As(err, new(*connect.OlderPrimaryError))
	case readOnly(code), strings.HasPrefix(code, "40"), strings.HasPrefix(code, "53"):
		return true
	}
	return isGone(err) && !strings.HasPrefix(sqlState(err), "28") && sqlState(err) != "3D000"
}

// isRefused reports whether the server refuses the statement itself, such as for a missing right.
func isRefused(err error) bool {
	switch code := sqlState(err); {
	case code == "", isConnecting(err), isPassing(err), isGone(err), isLost(err):
		return false
	}
	return true
}

// isUnknown reports whether the statement may have been executed in spite of the error: no answer came, or the server
// went down, perhaps after the commit.
func isUnknown(err error) bool {
	if pgconn.SafeToRetry(err) || backend.IsUnsent(err) {
		return false
	}
	return sqlState(err) == "" || isGone(err)
}
