package shards

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/internal/connstring"
	"github.com/kiloshard/kiloshard/shards/internal/endpoint"
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
	CA        string   `json:"ca,omitempty" yaml:"ca,omitempty"`     // of the authorities of the servers' certificates; defaults to the system's
	Cert      string   `json:"cert,omitempty" yaml:"cert,omitempty"` // with Key, a client's certificate
	Key       string   `json:"key,omitempty" yaml:"key,omitempty"`

	// Limits on the DSNs of hosts that come from a store, postgres or etcd: anyone who can write the map there must not
	// learn the secrets of services. Only kiloshard.yaml itself sets these fields.

	// Variables may be anywhere in the DSNs. A * stands for any letters. Defaults to *_PASSWORD, only as the password.
	Variables []string `json:"variables,omitempty" yaml:"variables,omitempty,quoted"`
	// Hosts may be in the DSNs. A * stands for any letters. Defaults to all.
	Hosts []string `json:"hosts,omitempty" yaml:"hosts,omitempty,quoted"`
	// Local are settings that override those of the DSNs; see LocalKeys.
	Local map[string]string `json:"-" yaml:"local,omitempty"`

	variables connstring.Variables // of DSN and Password
	dir       string               // of the config that Load read; empty without one
}

// LocalKeys are the settings that [Store.Local] may have. A DSN from a store may have none of them but sslmode: they
// name files of this machine, or say what a server may ask for.
var LocalKeys = []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "passfile", "service", "servicefile", "require_auth"}

// ConnString returns the DSN to connect with, as [Host.ConnString] does. Never print it.
func (s Store) ConnString() string { return connstring.Localize(s.variables.Fill(s.DSN), nil, s.dir) }

// PasswordText returns the password of etcd's user. In a store that [Load] or [Parse] read, each ${NAME} is replaced as
// by [Host.ConnString]. Never print it.
func (s Store) PasswordText() string { return s.variables.Fill(s.Password) }

// String returns the kind and the address, without any password.
func (s Store) String() string {
	s = s.withDefaults()
	switch s.Kind {
	case StorePostgres:
		return strings.TrimSpace(s.Kind + " " + connstring.Address(s.ConnString()))
	case StoreEtcd:
		addresses := make([]string, len(s.Endpoints))
		for i, url := range s.Endpoints {
			if addresses[i] = url; !endpoint.Valid(url) {
				addresses[i] = quoted(url)
			}
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

func (s Store) checkKind() error {
	if !slices.Contains([]string{StoreFile, StorePostgres, StoreEtcd}, s.Kind) {
		return invalid("store.kind", quoted(s.Kind))
	}
	return nil
}

// check returns a [FieldError] for the first field that is wrong.
func (s Store) check() error {
	if err := s.checkKind(); err != nil {
		return err
	}
	for _, f := range []struct {
		name, kind string
		given      bool
	}{
		{"dsn", StorePostgres, s.DSN != ""},
		{"endpoints", StoreEtcd, len(s.Endpoints) > 0},
		{"prefix", StoreEtcd, s.Prefix != ""},
		{"user", StoreEtcd, s.User != ""},
		{"password", StoreEtcd, s.Password != ""},
		{"ca", StoreEtcd, s.CA != ""},
		{"cert", StoreEtcd, s.Cert != ""},
		{"key", StoreEtcd, s.Key != ""},
	} {
		if f.given && f.kind != s.Kind {
			return &FieldError{Field: "store." + f.name, Found: "a field that " + s.Kind + " does not have", Expected: "none"}
		}
	}
	if !s.isRemote() && (len(s.Variables) > 0 || len(s.Hosts) > 0 || len(s.Local) > 0) {
		return &FieldError{Field: "store", Found: "variables, hosts or local", Expected: "none of them: DSNs in this file are trusted as they are"}
	}
	if s.Kind == StorePostgres && s.DSN == "" {
		return invalid("store.dsn", "missing")
	}
	if s.Kind == StoreEtcd {
		return s.checkEtcd()
	}
	return nil
}

var etcdPrefixPattern = regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+/?$`)

func (s Store) checkEtcd() error {
	if len(s.Endpoints) == 0 {
		return invalid("store.endpoints", "none")
	}
	for i, url := range s.Endpoints {
		at := fmt.Sprintf("store.endpoints[%d]", i)
		if !endpoint.Valid(url) {
			return invalid(at, quoted(url))
		}
		tls := endpoint.UsesTLS(url)
		if tls != endpoint.UsesTLS(s.Endpoints[0]) {
			return &FieldError{Field: at, Found: url + " after " + s.Endpoints[0], Expected: "http or https for all of them"}
		}
		if !tls && s.User != "" && !endpoint.Loopback(url) {
			return &FieldError{Field: at, Found: url + ", which would send the password in clear text", Expected: "https://, since there is a user; http:// only on this machine"}
		}
		if !tls && (s.CA != "" || s.Cert != "") {
			return &FieldError{Field: at, Found: url + ", which does not use TLS", Expected: "https://, since there are certificates"}
		}
	}
	for _, f := range []struct {
		name, value string
		other       string
		otherValue  string
	}{
		{"password", s.Password, "user", s.User},
		{"user", s.User, "password", s.Password},
		{"key", s.Key, "cert", s.Cert},
		{"cert", s.Cert, "key", s.Key},
	} {
		if f.value != "" && f.otherValue == "" {
			return &FieldError{Field: "store." + f.name, Found: "a " + f.name + " without a " + f.other, Expected: "both, or neither"}
		}
	}
	if s.Prefix != "" && !etcdPrefixPattern.MatchString(s.Prefix) {
		return &FieldError{Field: "store.prefix", Found: quoted(s.Prefix), Expected: `what all keys begin with, such as "/kiloshard/photos/"`}
	}
	return nil
}
