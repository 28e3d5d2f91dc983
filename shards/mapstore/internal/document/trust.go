package document

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
)

// CheckTrust returns a [shards.FieldError] for the first DSN that uses a variable, a file or a host that local does not
// allow in DSNs from a store.
func CheckTrust(local shards.Store, c shards.Config) error {
	for i, h := range c.Hosts {
		if err := checkTrustOf(local, fmt.Sprintf("hosts[%d].dsn", i), h.DSN); err != nil {
			return err
		}
		if h.Direct != "" {
			if err := checkTrustOf(local, fmt.Sprintf("hosts[%d].direct", i), h.Direct); err != nil {
				return err
			}
		}
		for k, dsn := range h.Replicas {
			if err := checkTrustOf(local, fmt.Sprintf("hosts[%d].replicas[%d]", i, k), dsn); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkTrustOf(local shards.Store, field, text string) error {
	if whole := dsn.Variable.FindStringSubmatch(text); whole != nil && whole[0] == text && named(local.Variables, whole[1]) {
		return nil // this machine defines the whole DSN
	}
	parts, ok := splitSettings(text)
	if !ok {
		return &shards.FieldError{Field: field, Found: "a DSN that cannot be parsed", Expected: "a postgres:// URL, or keywords and values"}
	}
	for _, p := range parts {
		for _, v := range dsn.Variable.FindAllStringSubmatch(p.Value+" "+p.Key, -1) {
			name := v[1]
			if !named(local.Variables, name) && (p.Key != "password" || !named([]string{"*_PASSWORD"}, name)) {
				return &shards.FieldError{
					Field: field, Found: "variable " + name + " in a DSN from the store",
					Expected: "one such as PG_A_PASSWORD as the password; or its name in store.variables of kiloshard.yaml",
				}
			}
		}
		switch {
		case p.Key == "" || slices.Contains(fromStore, p.Key):
		case slices.Contains(shards.LocalKeys, p.Key):
			return &shards.FieldError{
				Field: field, Found: p.Key + " in a DSN from the store", Expected: "none; kiloshard.yaml sets it in store.local",
			}
		default:
			return &shards.FieldError{
				Field: field, Found: fmt.Sprintf("%.100q in a DSN from the store", p.Key), Expected: "only " + strings.Join(fromStore, ", "),
			}
		}
		if p.Key == "host" && len(local.Hosts) > 0 && !named(local.Hosts, p.Value) {
			return &shards.FieldError{
				Field: field, Found: fmt.Sprintf("host %.100q in a DSN from the store", p.Value), Expected: "one in store.hosts of kiloshard.yaml",
			}
		}
	}
	return nil
}

// fromStore are the settings that a DSN from a store may have. Others change what statements do in every session, or
// name files.
var fromStore = []string{
	"host", "port", "dbname", "user", "password", "sslmode", "sslnegotiation", "sslsni", "channel_binding", "connect_timeout", "target_session_attrs",
	"application_name", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
	"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_lifetime_jitter",
	"pool_max_conn_idle_time", "pool_health_check_period",
	"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
}

// named reports whether a pattern matches a name.
func named(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// splitSettings returns the settings of a DSN, with one setting for each host, and false if it cannot be parsed.
func splitSettings(text string) ([]dsn.Setting, bool) {
	d, err := dsn.Parse(text)
	if err != nil || strings.ContainsFunc(text, unicode.IsControl) || inspect(text) == unreadable {
		return nil, false
	}
	var settings []dsn.Setting
	for _, s := range d.All() {
		values := []string{s.Value}
		if s.Key == "host" {
			values = strings.Split(s.Value, ",")
		}
		if d.IsURL() && keyOf(s.Key) == "" {
			return nil, false
		}
		for _, value := range values {
			settings = append(settings, dsn.Setting{Key: keyOf(s.Key), Value: value})
		}
	}
	if _, ok := d.Lookup("host"); !ok {
		settings = append(settings, dsn.Setting{Key: "host"}) // the machine's default
	}
	return settings, true
}

// keyOf returns a key in lower case, so that capitals hide no setting that is refused. Only "password" is the password
// to pgx, which sends "Password" to the server as a parameter.
func keyOf(key string) string {
	lower := strings.ToLower(strings.TrimSpace(key))
	if lower == "password" {
		return key
	}
	return lower
}
