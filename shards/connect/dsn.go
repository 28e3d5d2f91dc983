package connect

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// dsnError says what is wrong with a DSN, where that can be said without showing any of it.
type dsnError struct{ text string }

func (e *dsnError) Error() string        { return "dsn: " + e.text }
func (e *dsnError) Is(target error) bool { return target == shards.ErrBadDSN }

// dsnTexts says in our words what the parser says, by how its cause begins.
var dsnTexts = []struct{ begins, text string }{
	{"unable to read CA file", "sslrootcert: the file cannot be read"},
	{"unable to add CA", "sslrootcert: no certificate in PEM in the file"},
	{"unable to read sslkey", "sslkey: the file cannot be read"},
	{"failed to decode sslkey", "sslkey: no key in PEM in the file"},
	{"unable to find sslpassword", "sslkey: the key is encrypted; expected sslpassword with it"},
	{"unable to decrypt key", "sslkey: the key does not open with this sslpassword"},
	{"unable to read cert", "sslcert: the file cannot be read"},
	{"unable to load cert", "sslcert, sslkey: these are no certificate in PEM and its key"},
	{`both "sslcert" and "sslkey"`, "sslcert, sslkey: one of them is missing"},
	{"sslmode is invalid", "sslmode: expected disable, allow, prefer, require, verify-ca or verify-full"},
	{"failed to read service file", "service: the service file, ~/.pg_service.conf or servicefile=FILE, cannot be read"},
	{"unable to find service", "service: no such service in the service file, ~/.pg_service.conf or servicefile=FILE"},
}

// badDSN returns the error for what the parser says of a DSN. That itself is left out: it may have a part of a password
// in it.
func badDSN(err error) error {
	var parsing *pgconn.ParseConfigError
	if cause := errors.Unwrap(err); errors.As(err, &parsing) && cause != nil {
		for _, known := range dsnTexts {
			if strings.HasPrefix(cause.Error(), known.begins) {
				bad := &dsnError{known.text + why(cause)}
				return &Error{text: bad.Error(), Err: bad}
			}
		}
	}
	return &Error{text: shards.ErrBadDSN.Error(), Err: shards.ErrBadDSN}
}

// why says why a file cannot be read, with its name unless that looks as if a password had got into it.
func why(err error) string {
	var e *fs.PathError
	if !errors.As(err, &e) {
		return ""
	}
	if strings.ContainsAny(e.Path, "@:?&= ") {
		return ": " + e.Err.Error()
	}
	return ": " + e.Path + ": " + e.Err.Error()
}
