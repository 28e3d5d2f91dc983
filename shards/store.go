package shards

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// The kinds of [Store].
const (
	StoreFile     = "file"     // in kiloshard.yaml itself
	StorePostgres = "postgres" // in a control database
	StoreEtcd     = "etcd"
)

// Store says where the map is kept and how to connect to it.
//
// Printing, logging and JSON leave out its DSN and its password, with the exception that a [Host] has.
type Store struct {
	Kind string `json:"kind" yaml:"kind"` // StoreFile, StorePostgres or StoreEtcd; defaults to StoreFile

	DSN string `json:"-" yaml:"dsn,omitempty,quoted"` // of postgres, as written; see ConnString

	// Of etcd. Files are PEM; see [Config.Path].
	Endpoints []string `json:"endpoints,omitempty" yaml:"endpoints,omitempty,quoted"` // such as https://10.0.0.9:2379
	Prefix    string   `json:"prefix,omitempty" yaml:"prefix,omitempty"`              // of all keys of this cluster; defaults to /kiloshard/ and its name
	User      string   `json:"user,omitempty" yaml:"user,omitempty"`
	Password  string   `json:"-" yaml:"password,omitempty,quoted"`   // as written; see PasswordText
	CA        string   `json:"ca,omitempty" yaml:"ca,omitempty"`     // the authorities that may have signed the servers' certificates; defaults to the system's
	Cert      string   `json:"cert,omitempty" yaml:"cert,omitempty"` // with Key, a client's certificate
	Key       string   `json:"key,omitempty" yaml:"key,omitempty"`

	// Limits on the DSNs of hosts that come from a store, postgres or etcd: those who may write the map there must not
	// learn the secrets of services. Only kiloshard.yaml itself sets these fields.
	Variables []string          `json:"variables,omitempty" yaml:"variables,omitempty,quoted"` // variables that they may use anywhere, with * for any letters; defaults to *_PASSWORD, only as the password
	Hosts     []string          `json:"hosts,omitempty" yaml:"hosts,omitempty,quoted"`         // the hosts they may name, with * for any letters; defaults to all
	Local     map[string]string `json:"-" yaml:"local,omitempty"`                              // settings that override theirs; see LocalKeys

	expanded []expansion // of DSN and Password
	dir      string      // of the config that Load read; empty without one
}

// Host returns the control database as a host named "store", to connect to it.
func (s Store) Host() Host {
	return Host{Name: "store", DSN: s.DSN, Weight: 1, expanded: s.expanded, dir: s.dir}
}

// ConnString returns the DSN to connect with, as [Host.ConnString] does. Never print it.
func (s Store) ConnString() string { return s.Host().ConnString() }

// PasswordText returns the password of etcd's user. In a store that [Load] or [Parse] read, each ${NAME} is replaced as
// by [Host.ConnString]. Never print it.
func (s Store) PasswordText() string { return meantNow(s.expanded, s.Password) }

// String returns the kind and the address, without any password.
func (s Store) String() string {
	s = s.withDefaults()
	switch s.Kind {
	case StorePostgres:
		return strings.TrimSpace(s.Kind + " " + s.Host().Address())
	case StoreEtcd:
		addresses := make([]string, len(s.Endpoints))
		for i, endpoint := range s.Endpoints {
			addresses[i] = quotedUnless(endpointPattern, endpoint)
		}
		text := s.Kind + " " + strings.Join(addresses, ",")
		if s.Prefix != "" {
			text += " " + s.Prefix
		}
		return text
	}
	return s.Kind
}

// GoString keeps %#v from printing the password.
func (s Store) GoString() string { return "shards.Store{" + s.String() + "}" }

// Format keeps all other verbs from printing the password.
func (s Store) Format(state fmt.State, verb rune) {
	if verb == 'v' && state.Flag('#') {
		_, _ = io.WriteString(state, s.GoString())
		return
	}
	_, _ = fmt.Fprintf(state, fmt.FormatString(state, verb), s.String())
}

// LogValue keeps a logger from printing the password.
func (s Store) LogValue() slog.Value { return slog.StringValue(s.String()) }

// isRemote reports whether the map is kept outside kiloshard.yaml.
func (s Store) isRemote() bool { return s.Kind != "" && s.Kind != StoreFile }

// withDefaults returns the store with its empty fields filled in, sharing no slice with s.
func (s Store) withDefaults() Store {
	if s.Kind == "" {
		s.Kind = StoreFile
	}
	s.Endpoints = append([]string(nil), s.Endpoints...)
	s.Variables, s.Hosts, s.Local = slices.Clone(s.Variables), slices.Clone(s.Hosts), maps.Clone(s.Local)
	return s
}
