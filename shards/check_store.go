package shards

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	endpointPattern = regexp.MustCompile(`^(https?://)([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)
	prefixPattern   = regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+/?$`)
)

const (
	expectedStoreDSN  = `how to reach the control database, such as "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"`
	expectedEndpoint  = `the URL of a server, such as "https://10.0.0.9:2379", without a user or a password`
	expectedEndpoints = `a list of servers, such as ["https://10.0.0.9:2379"]`
	expectedPassword  = `a password, such as "${ETCD_PASSWORD}"`
	expectedVariables = `names of variables that DSNs out of the store may have anywhere, such as ["PG_*"]`
	expectedTrusted   = `hosts that DSNs out of the store may name, such as ["10.0.0.*", "*.db.example.com"]`
	expectedKind      = "file, postgres or etcd"
)

func checkStoreKind(s Store) error {
	if !slices.Contains([]string{StoreFile, StorePostgres, StoreEtcd}, s.Kind) {
		return &FieldError{Field: "store.kind", Found: quoted(s.Kind), Expected: expectedKind}
	}
	return nil
}

func checkStore(c Config) error {
	s := c.Store
	if err := checkStoreKind(s); err != nil {
		return err
	}
	for _, f := range s.fields() {
		if f.given && f.kind != s.Kind {
			return &FieldError{Field: "store." + f.name, Found: "a field that " + s.Kind + " does not have", Expected: "none"}
		}
	}
	if !s.isRemote() && (len(s.Variables) > 0 || len(s.Hosts) > 0 || len(s.Local) > 0) {
		return &FieldError{Field: "store", Found: "variables, hosts or local", Expected: "none of them: DSNs in this file are trusted as they are"}
	}
	switch s.Kind {
	case StorePostgres:
		if s.DSN == "" {
			return &FieldError{Field: "store.dsn", Found: "missing", Expected: expectedStoreDSN}
		}
	case StoreEtcd:
		return s.checkEtcd()
	}
	return nil
}

// storeFieldOf is a field that one kind of store has.
type storeFieldOf struct {
	name  string
	kind  string
	given bool
}

func (s Store) fields() []storeFieldOf {
	return []storeFieldOf{
		{"dsn", StorePostgres, s.DSN != ""},
		{"endpoints", StoreEtcd, len(s.Endpoints) > 0},
		{"prefix", StoreEtcd, s.Prefix != ""},
		{"user", StoreEtcd, s.User != ""},
		{"password", StoreEtcd, s.Password != ""},
		{"ca", StoreEtcd, s.CA != ""},
		{"cert", StoreEtcd, s.Cert != ""},
		{"key", StoreEtcd, s.Key != ""},
	}
}

func (s Store) checkEtcd() error {
	if len(s.Endpoints) == 0 {
		return &FieldError{Field: "store.endpoints", Found: "none", Expected: expectedEndpoints}
	}
	for i, endpoint := range s.Endpoints {
		at := fmt.Sprintf("store.endpoints[%d]", i)
		if !endpointPattern.MatchString(endpoint) {
			return &FieldError{Field: at, Found: quotedUnless(endpointPattern, endpoint), Expected: expectedEndpoint}
		}
		if secure(endpoint) != secure(s.Endpoints[0]) {
			return &FieldError{Field: at, Found: endpoint + " after " + s.Endpoints[0], Expected: "http or https for all of them"}
		}
		if !secure(endpoint) && s.User != "" && !loopback(endpoint) {
			return &FieldError{Field: at, Found: endpoint + ", which would send the password in clear text", Expected: "https://, since there is a user; http:// only on this machine"}
		}
		if !secure(endpoint) && (s.CA != "" || s.Cert != "") {
			return &FieldError{Field: at, Found: endpoint + ", which does not use TLS", Expected: "https://, since there are certificates"}
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
	if s.Prefix != "" && !prefixPattern.MatchString(s.Prefix) {
		return &FieldError{Field: "store.prefix", Found: quoted(s.Prefix), Expected: `what all keys begin with, such as "/kiloshard/photos/"`}
	}
	return nil
}

// loopback reports whether an endpoint is on this machine, without asking a resolver.
func loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

func secure(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

// quotedUnless returns a text that matches the pattern as it is, and any other as [quoted] does.
func quotedUnless(pattern *regexp.Regexp, text string) string {
	if pattern.MatchString(text) {
		return text
	}
	return quoted(text)
}
