package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Credentials are the user and password for a connection to a host. Printing, logging and JSON leave out the password.
type Credentials struct {
	User     string `json:"user"` // empty: the DSN's
	Password string `json:"-"`    // empty: the DSN's, or that of a passfile
}

// ErrNoCredentials says that there are no credentials for a connection: a [CredentialsFunc] failed or timed out. It
// says nothing about the server.
var ErrNoCredentials = errors.New("no credentials")

// CredentialsFunc returns the credentials for a connection that is about to be made to a host: a token of a cloud's IAM, a
// password from a vault. It is called for each connection, by many goroutines at once, and ctx limits how long it may
// take. [Host.ConnString] names one address here, without a password, and the credentials are sent only to that address.
type CredentialsFunc func(ctx context.Context, host Host) (Credentials, error)

// WithCredentials returns the host with credentials from fn, which override those in the DSN. If fn is nil it returns
// the host unchanged.
func (h Host) WithCredentials(fn CredentialsFunc) Host {
	if fn != nil {
		h.credentials = fn
	}
	return h
}

// Credentials calls the function of [Host.WithCredentials]. Without one they are empty.
func (h Host) Credentials(ctx context.Context) (Credentials, error) {
	if h.credentials == nil {
		return Credentials{}, nil
	}
	return h.credentials(ctx, h)
}

// HasCredentials reports whether the host has a function for its credentials.
func (h Host) HasCredentials() bool { return h.credentials != nil }

// WithCredentials returns the map with credentials from fn for all its hosts, which override those in their DSNs. Everything
// that uses the map connects with them: create, verify, migrations, the router. If fn is nil it returns the map unchanged.
func (m *Map) WithCredentials(fn CredentialsFunc) *Map {
	if fn == nil {
		return m
	}
	config := *m.config
	config.Hosts = append([]Host(nil), config.Hosts...)
	for i, h := range config.Hosts {
		config.Hosts[i] = h.WithCredentials(fn)
	}
	other := *m
	other.config = &config
	return &other
}

// String returns the user, without the password.
func (c Credentials) String() string {
	if c.User == "" {
		return "the DSN's user"
	}
	return "user " + c.User
}

// Format keeps all verbs from printing the password.
func (c Credentials) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }

// LogValue keeps a logger from printing the password.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }
