package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Credentials are whom to connect to a host as. However they are printed, logged or put into JSON, the password is left
// out.
type Credentials struct {
	User     string `json:"user"` // empty: the DSN's
	Password string `json:"-"`    // empty: the DSN's, or that of a passfile
}

// ErrNoCredentials says that there are no credentials for a connection: a [CredentialsFunc] failed, or was not done in time. It
// says nothing of the server.
var ErrNoCredentials = errors.New("no credentials")

// CredentialsFunc returns the credentials for a connection that is about to be made to a host: a token of a cloud's IAM, a
// password from a vault. It is called for each connection, by many goroutines at once, and ctx says how long it may
// take. The address is in [Host.ConnString], which names one here: what is returned is sent to no other.
type CredentialsFunc func(ctx context.Context, host Host) (Credentials, error)

// WithCredentials returns the host with fn for its credentials, over what the DSN says. With nil it returns the host as
// it is.
func (h Host) WithCredentials(fn CredentialsFunc) Host {
	if fn != nil {
		h.credentials = fn
	}
	return h
}

// Credentials asks the function of [Host.WithCredentials]. They are empty without one.
func (h Host) Credentials(ctx context.Context) (Credentials, error) {
	if h.credentials == nil {
		return Credentials{}, nil
	}
	return h.credentials(ctx, h)
}

// HasCredentials reports whether there is a function to ask.
func (h Host) HasCredentials() bool { return h.credentials != nil }

// WithCredentials returns the map with fn for the credentials of all its hosts, over what their DSNs say, so that whatever
// is given the map connects with them: create, verify, migrations, the router. With nil it returns the map as it is.
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
