package connect

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// dsnError says what is wrong with a DSN without showing any of it.
type dsnError struct{ text string }

func (e *dsnError) Error() string        { return "dsn: " + e.text }
func (e *dsnError) Is(target error) bool { return target == shards.ErrBadDSN }

// dsnTexts are our texts for the parser's errors, by the beginning of the cause.
var dsnTexts = []struct{ begins, text string }{
	{"unable to read CA file", "sslrootcert: the file cannot be read"},
	{"unable to add CA", "sslrootcert: the file has no certificate in PEM"},
	{"unable to read sslkey", "sslkey: the file cannot be read"},
	{"failed to decode sslkey", "sslkey: the file has no key in PEM"},
	{"unable to find sslpassword", "sslkey: the key is encrypted; expected sslpassword with it"},
	{"unable to decrypt key", "sslkey: this sslpassword does not decrypt the key"},
	{"unable to read cert", "sslcert: the file cannot be read"},
	{"unable to load cert", "sslcert, sslkey: expected a certificate in PEM and its key"},
	{`both "sslcert" and "sslkey"`, "sslcert, sslkey: one of them is missing"},
	{"sslmode is invalid", "sslmode: expected disable, allow, prefer, require, verify-ca or verify-full"},
	{"failed to read service file", "service: the service file, ~/.pg_service.conf or servicefile=FILE, cannot be read"},
	{"unable to find service", "service: no such service in the service file, ~/.pg_service.conf or servicefile=FILE"},
}

// badDSN returns the error for a parser's error about a DSN, without its text: that may contain a part of a password.
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

// why says why a file cannot be read, with its name unless the name may contain a password.
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
