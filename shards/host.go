package shards

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
)

// Host is a physical place for shards: one Postgres database.
//
// Printing, logging and JSON leave out a Host's DSNs, with one exception: package fmt prints a Host in an
// unexported field of another struct field by field. That shows the DSN as written, so keep passwords in
// variables.
type Host struct {
	Name     string   `json:"name" yaml:"name"`
	DSN      string   `json:"-" yaml:"dsn,quoted"`      // of the primary, as written; see ConnString
	Replicas []string `json:"-" yaml:"replicas,quoted"` // DSNs as written; see ReplicaConnStrings
	Weight   int      `json:"weight" yaml:"weight"`     // its share beside other hosts, 1 or more; defaults to 1

	// Only for strategies that allocate new keys: a directory and ByID.
	Closed   bool `json:"closed,omitempty" yaml:"closed,omitempty"`     // gets no new keys; those that it has stay
	Capacity int  `json:"capacity,omitempty" yaml:"capacity,omitempty"` // the most keys on this host; each of its shards has an equal part. Defaults to no limit

	expanded    []expansion     // of the DSNs in which Parse found variables
	dir         string          // of the config that Load read; empty without one
	store       *Store          // that the host came from; nil without one. Package fmt prints it as an address
	credentials CredentialsFunc // nil without one
	identity    *Identity       // of the map; nil without one
}

// ErrBadDSN is the error of packages that connect for a DSN that cannot be parsed. It wraps no cause on purpose: a
// parser's message about a malformed DSN may contain a part of its password.
var ErrBadDSN = errors.New("dsn: neither a postgres:// URL nor keywords and values as Postgres and pgx know them " +
	"(in a URL, a password's special characters are written as %xx; the DSN is not shown, for it may hold a password)")

// ConnString returns the DSN to connect with. For a host that [Load] or [Parse] read, each ${NAME} is
// replaced by its present value, or by its value at that time if it is no longer set, and file names
// are made absolute: see [Load]. For a host made in Go it is the DSN unchanged. It holds a
// password: never print it.
func (h Host) ConnString() string { return h.meant(h.DSN) }

// meant returns a DSN of the host with the present values of its variables.
func (h Host) meant(dsn string) string {
	text := meantNow(h.expanded, dsn)
	if h.store != nil {
		text = withLocal(text, h.store.Local)
	}
	return besideConfig(text, h.dir)
}

// ReplicaConnStrings returns the DSNs of the replicas as [Host.ConnString] does that of the primary.
func (h Host) ReplicaConnStrings() []string {
	texts := make([]string, len(h.Replicas))
	for i, dsn := range h.Replicas {
		texts[i] = h.meant(dsn)
	}
	return texts
}

// Replica returns replica i, 0-based, as a host of its own, named pg-a/0 if this one is named pg-a.
// It has the replica's DSN, and the same function for credentials.
func (h Host) Replica(i int) Host {
	return Host{
		Name: fmt.Sprintf("%s/%d", h.Name, i), DSN: h.Replicas[i], Weight: 1,
		expanded: h.expanded, dir: h.dir, store: h.store, credentials: h.credentials, identity: h.identity,
	}
}

// Store returns the [Store] that the host came from, and false for a host of kiloshard.yaml or one that was made in Go. Others
// may write to a store, so a connection trusts its hosts less: see [Store.Variables].
func (h Host) Store() (Store, bool) {
	if h.store == nil {
		return Store{}, false
	}
	return *h.store, true
}

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

// SameDatabase reports whether two hosts have the same DSN, and the same DSNs of replicas.
func (h Host) SameDatabase(other Host) bool {
	return h.ConnString() == other.ConnString() && slices.Equal(h.ReplicaConnStrings(), other.ReplicaConnStrings())
}
