package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrCredentials says that a server refuses the user or the password that it was given (SQLSTATE class 28).
var ErrCredentials = errors.New("the server refuses the credentials")

// Error says why a connection to a host failed, and what to do about it. Neither its text nor the errors that it wraps
// contain a password.
type Error struct {
	text string
	Err  error // from pgx, or from the function for the host's credentials

	who, why, advice string // of a text about a failed connection
	pooler           bool
}

func (e *Error) compose() string {
	text := e.who + e.why
	if e.advice != "" {
		text += "; " + e.advice
	}
	return text
}

// Error says what went wrong at which address, and what was expected.
func (e *Error) Error() string { return e.text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports for [ErrCredentials] whether the server refused the credentials, and for [ErrPooler] whether a pooler refused the session.
func (e *Error) Is(target error) bool {
	return target == ErrCredentials && refusal(e.Err) != nil || target == ErrPooler && e.pooler
}

// explain turns pgx's error about a failed connection into an [Error]. It returns other errors unchanged.
func (l *logins) explain(err error) error {
	config := configOf(err)
	if config == nil || explained(err) {
		return err
	}
	hide := hiding(config, l.sent.latest())
	redact(err, hide)
	if errors.Is(err, context.Canceled) {
		return err
	}
	e := &Error{
		Err: err, who: hide(fmt.Sprintf("user %s, database %s: ", config.User, config.Database)), why: hide(reasons(errors.Unwrap(connecting(err)).Error())),
		advice: hide(advise(err, config, l.host.HasCredentials())),
	}
	if byDefault, bad := hasDefaultMode(l.host, config); bad == nil && byDefault && failedTLS(err) {
		e.advice = strings.TrimPrefix(e.advice+"; "+otherModes, "; ")
	}
	if e.pooler = l.needsServer && isPooler(err); e.pooler {
		e.why, e.advice = refusedParameter.ReplaceAllString(e.why, "$1"), throughPooler // any of many parameters comes first
	}
	e.text = e.compose()
	return e
}

// attempt matches pgx's text about one attempt: the address, the name that it was resolved from, and why it failed.
var attempt = regexp.MustCompile(`^(\S+) \((.*?)\): (?:dial error: (?:dial \S+ \S+: )?)?(.*)$`)

// noTLS is pgx's text for an attempt with TLS at a server without it.
const noTLS = "tls error: server refused TLS connection"

// reasons turns pgx's text about all attempts, with and without TLS at each address, into one line. It names each address
// once, and each reason of that address once.
func reasons(text string) string {
	type place struct {
		at  string
		why []string
	}
	var all []place
	for line := range strings.Lines(text) {
		at, why := "", strings.TrimPrefix(strings.TrimSpace(line), "hostname resolving error: ")
		if m := attempt.FindStringSubmatch(why); m != nil {
			m[3] = strings.TrimPrefix(m[3], "AfterNetConnect failed: ") // our own error: no credentials
			if at, why = m[1]+": ", m[3]; !strings.HasPrefix(strings.TrimPrefix(at, "["), m[2]) {
				at = m[1] + " (" + m[2] + "): "
			}
		}
		if len(all) == 0 || all[len(all)-1].at != at {
			all = append(all, place{at: at})
		}
		if p := &all[len(all)-1]; !slices.Contains(p.why, why) {
			p.why = append(p.why, why)
		}
	}
	var parts []string
	for _, p := range all {
		if len(p.why) > 1 { // the reason without TLS says more
			p.why = slices.DeleteFunc(p.why, func(why string) bool { return why == noTLS })
		}
		parts = append(parts, p.at+strings.Join(p.why, "; "))
	}
	return strings.Join(parts, "; ")
}

// explained reports whether an error already wraps an [Error], which is then about another connection, and which other
// goroutines may be reading. One inside pgx's own error is about one address, and does not count.
func explained(err error) bool {
	var own *Error
	return errors.As(err, &own) && (connecting(err) == nil || connecting(own) != nil)
}

func connecting(err error) *pgconn.ConnectError {
	var e *pgconn.ConnectError
	errors.As(err, &e)
	return e
}

// configOf returns the config of a failed connection, nil for other errors.
func configOf(err error) *pgconn.Config {
	if e := connecting(err); e != nil {
		return e.Config
	}
	return nil
}

// redact removes the password from pgx's error, and from the message of a server that echoes it.
func redact(err error, hide func(string) string) {
	e := connecting(err)
	config := e.Config
	e.Config = &pgconn.Config{Host: config.Host, Port: config.Port, Database: config.Database, User: config.User}
	each(err, func(err error) {
		if e, ok := err.(*pgconn.PgError); ok { //nolint:errorlint // each one by itself
			for _, text := range []*string{&e.Message, &e.Detail, &e.Hint, &e.InternalQuery, &e.Where, &e.Routine, &e.File} {
				*text = hide(*text)
			}
		}
	})
}

// each calls fn for an error and all that it wraps.
func each(err error, fn func(error)) {
	if err == nil {
		return
	}
	fn(err)
	switch e := err.(type) { //nolint:errorlint // it goes down by itself
	case interface{ Unwrap() error }:
		each(e.Unwrap(), fn)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			each(err, fn)
		}
	}
}

// hiding returns a function that removes passwords from a text: that of a config, and others. It ignores a password that
// is also the name of the user or the database, and one of a few letters, which is a part of too many words.
func hiding(config *pgconn.Config, others []string) func(text string) string {
	var pairs []string
	for _, p := range append(others, config.Password) {
		if len(p) > 3 && p != config.User && p != config.Database {
			pairs = append(pairs, p, "********")
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// refusal returns the error of a server that refuses the credentials, or nil.
func refusal(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "28") {
		return pg
	}
	return nil
}

// otherModes is the advice for a host that has no sslmode.
const otherModes = "without sslmode a DSN means verify-full: sslmode=require encrypts and does not verify the server, sslmode=disable does neither"

// failedTLS reports whether a server has no TLS, or a certificate that does not verify.
func failedTLS(err error) bool {
	var unverified *tls.CertificateVerificationError
	return errors.As(err, &unverified) || strings.Contains(connecting(err).Error(), noTLS)
}

// advise says what was expected, for errors that people can fix.
func advise(err error, config *pgconn.Config, credentials bool) string {
	var (
		wrongName x509.HostnameError
		wrongCA   x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
	)
	text := connecting(err).Unwrap().Error()
	switch refused := refusal(err); {
	case refused != nil && strings.Contains(refused.Message, "pg_hba.conf"):
		return "expected a line in the server's pg_hba.conf that allows this user from this address, with or without encryption as in the DSN"
	case refused != nil && strings.Contains(refused.Message, "certificate"):
		return "expected a client certificate that the server accepts for this user: sslcert=FILE and sslkey=FILE in the DSN"
	case refused != nil && credentials:
		return "expected the password command, or the program's own credentials, to return the password of user " + config.User
	case refused != nil && config.Password == "":
		return "no password was found: expected one in the DSN, as ${NAME}, in a passfile, or from a password command"
	case refused != nil:
		return "expected the password of user " + config.User + " in the DSN or its variable, the service, PGPASSWORD or the passfile"
	case strings.Contains(text, "require_auth check failed") && strings.Contains(text, "requested md5"):
		return "the server asks for an MD5 hash of the password, which is not sent: expected scram-sha-256 in its pg_hba.conf and a password that is stored so, or TLS that verifies it (sslmode=verify-full), or require_auth=md5 in the DSN, which for a map from a store belongs in store.local"
	case strings.Contains(text, "require_auth check failed"):
		return "the server asks for the password itself, which is not sent: expected scram-sha-256 in its pg_hba.conf, or TLS that verifies it (sslmode=verify-full), or require_auth=password in the DSN, which for a map from a store belongs in store.local"
	case errors.As(err, &wrongName):
		return "expected the DSN to name the host as the certificate does, or a certificate for the name in the DSN"
	case errors.As(err, &wrongCA):
		return "expected sslrootcert to name the file of the CA that signed the server's certificate"
	case errors.As(err, &invalid):
		return "expected a certificate on the server that is valid now"
	case strings.HasSuffix(text, "server refused TLS connection"): // and no attempt was made without TLS
		return "the DSN asks for TLS: expected ssl = on, with a certificate, on the server"
	case strings.Contains(text, "remote error: tls:"):
		return "the server refuses the client's certificate: expected sslcert and sslkey of a CA that its ssl_ca_file names"
	case strings.Contains(text, "does not look like a TLS handshake"):
		return "expected a Postgres server at this address"
	}
	return ""
}
