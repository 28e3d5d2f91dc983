package shards

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/shards/internal/connstring"
)

// Host is a physical place for shards: one Postgres database.
//
// Printing, logging and JSON leave out a Host's DSNs, with one exception: package fmt prints a Host in an unexported
// field of another struct field by field. That shows the DSN as written, so keep passwords in variables.
type Host struct {
	Name     string   `json:"name" yaml:"name"`
	DSN      string   `json:"-" yaml:"dsn,quoted"`              // of the primary, as written; see ConnString
	Direct   string   `json:"-" yaml:"direct,omitempty,quoted"` // of the same primary for commands, where DSN leads to a pooler; else empty
	Replicas []string `json:"-" yaml:"replicas,quoted"`         // DSNs as written; see ReplicaConnStrings
	Weight   int      `json:"weight" yaml:"weight"`             // its share beside other hosts, 1 or more; defaults to 1

	// Only for strategies that allocate new keys: a directory and ByID.
	Closed   bool `json:"closed,omitempty" yaml:"closed,omitempty"`     // gets no new keys, and keeps those that it has
	Capacity int  `json:"capacity,omitempty" yaml:"capacity,omitempty"` // the most keys, in equal parts for its shards; defaults to no limit

	variables   connstring.Variables // of the DSNs
	dir         string               // of the config that Load read; empty without one
	store       *Store               // that the host came from; nil without one. Package fmt prints it as an address
	credentials CredentialsFunc      // nil without one
	identity    *Identity            // of the map; nil without one
}

// ErrBadDSN is the error of packages that connect for a DSN that cannot be parsed. It wraps no cause on purpose: a
// parser's message about a malformed DSN may contain a part of its password.
var ErrBadDSN = errors.New("dsn: neither a postgres:// URL nor keywords and values as Postgres and pgx know them " +
	"(in a URL, a password's special characters are written as %xx; the DSN is not shown, for it may hold a password)")

// NewHost returns a host for a DSN that no config has. lookup returns the values of its ${NAME} variables, as os.LookupEnv does. The
// error is a [FieldError] that names a variable which is not set.
func NewHost(name, dsn string, lookup func(name string) (value string, ok bool)) (Host, error) {
	h := Host{Name: name, DSN: dsn, Weight: 1}
	if fault := h.variables.Add(dsn, lookup); fault != nil {
		return Host{}, &FieldError{Field: "dsn", Found: fault.Found, Expected: cmp.Or(fault.Expected, "a DSN")}
	}
	return h, nil
}

// ConnString returns the DSN to connect with. For a host that [Load] or [Parse] read, each ${NAME} is replaced by its
// present value, or by its value at that time if it is no longer set, and file names are made absolute: see [Load].
// For a host made in Go it is the DSN unchanged. It holds a password: never print it.
func (h Host) ConnString() string { return h.connString(h.DSN) }

func (h Host) connString(dsn string) string {
	var settings map[string]string
	if h.store != nil {
		settings = h.store.Local
	}
	return connstring.Localize(h.variables.Fill(dsn), settings, h.dir)
}

// ForCommands returns the host as commands connect to it: past the pooler that its DSN may lead to.
func (h Host) ForCommands() Host {
	if h.Direct != "" {
		h.DSN, h.Direct = h.Direct, ""
	}
	return h
}

// ReplicaConnStrings returns the DSNs of the replicas as [Host.ConnString] does that of the primary.
func (h Host) ReplicaConnStrings() []string {
	texts := make([]string, len(h.Replicas))
	for i, dsn := range h.Replicas {
		texts[i] = h.connString(dsn)
	}
	return texts
}

// Replica returns replica i, 0-based, as a host of its own, named pg-a/0 if this one is named pg-a.
// It has the replica's DSN, and the same function for credentials.
func (h Host) Replica(i int) Host {
	return Host{
		Name: fmt.Sprintf("%s/%d", h.Name, i), DSN: h.Replicas[i], Weight: 1,
		variables: h.variables, dir: h.dir, store: h.store, credentials: h.credentials, identity: h.identity,
	}
}

// Store returns the [Store] that the host came from, and false for a host of kiloshard.yaml or one that was made in
// Go. Others may write to a store, so a connection trusts its hosts less: see [Store.Variables].
func (h Host) Store() (Store, bool) {
	if h.store == nil {
		return Store{}, false
	}
	return *h.store, true
}

// Host returns the control database as a host named "store", to connect to it.
func (s Store) Host() Host {
	return Host{Name: "store", DSN: s.DSN, Weight: 1, variables: s.variables, dir: s.dir}
}

// Address returns host, port and database of the primary for people to read, never a user or a password:
// 10.0.0.1:5432/app, and with a Unix socket its directory, /run/postgresql:5432/app. For a DSN that names a service
// it is service:NAME. It is empty for a DSN that names none of them or could be misread.
func (h Host) Address() string { return connstring.Address(h.ConnString()) }

// String returns the host's name and address, without its password.
func (h Host) String() string {
	if address := h.Address(); address != "" {
		return h.Name + " (" + address + ")"
	}
	return h.Name
}

// GoString keeps %#v from printing the password.
func (h Host) GoString() string { return "shards.Host{" + h.String() + "}" }

// Format keeps all other verbs from printing the password.
func (h Host) Format(s fmt.State, verb rune) {
	if verb == 'v' && s.Flag('#') {
		_, _ = io.WriteString(s, h.GoString())
		return
	}
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), h.String())
}

// LogValue keeps a logger from printing the password.
func (h Host) LogValue() slog.Value { return slog.StringValue(h.String()) }

// SameDatabase reports whether two hosts have the same DSN, the same one for commands, and the same DSNs of replicas.
func (h Host) SameDatabase(other Host) bool {
	return h.ConnString() == other.ConnString() && h.ForCommands().ConnString() == other.ForCommands().ConnString() && slices.Equal(h.ReplicaConnStrings(), other.ReplicaConnStrings())
}

// Credentials are the user and password for a connection to a host. Printing, logging and JSON leave out the password.
type Credentials struct {
	User     string `json:"user"` // empty: the DSN's
	Password string `json:"-"`    // empty: the DSN's, or that of a passfile
}

// ErrNoCredentials says that there are no credentials for a connection: a [CredentialsFunc] failed or timed out. It
// says nothing about the server.
var ErrNoCredentials = errors.New("no credentials")

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

// CredentialsFunc returns the credentials for a connection that is about to be made to a host: a token of a cloud's
// IAM, a password from a vault. It is called for each connection, by many goroutines at once, and ctx limits how long
// it may take. [Host.ConnString] names one address here, without a password, and the credentials are sent only to
// that address.
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

// Identity describes the cluster that a host's shards belong to: what its table kiloshard.settings holds, and what a
// map expects there.
type Identity struct {
	Cluster      string
	SchemaPrefix string
	Epoch        time.Time // the zero time for a layout without a time
	Layout       Layout    // in usable bits: the time without the bit of the sign
	Keys         string    // what decides the shard of a key: the strategy with its divisors, as in kiloshard.yaml
}

// KeysSum returns the SHA-256 of [Identity.Keys], in hexadecimal.
func (id Identity) KeysSum() string {
	sum := sha256.Sum256([]byte(id.Keys))
	return hex.EncodeToString(sum[:])
}

// Identity returns the identity that a host of a map must have, and false for a host that belongs to no map.
func (h Host) Identity() (Identity, bool) {
	if h.identity == nil {
		return Identity{}, false
	}
	return *h.identity, true
}
