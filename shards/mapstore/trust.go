package mapstore

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/kiloshard/kiloshard/shards"
)

// CheckTrust returns a [shards.FieldError] for the first DSN that uses a variable, a file or a host that [shards.Store] does
// not allow in DSNs from a store.
func CheckTrust(local shards.Store, c shards.Config) error {
	for i, h := range c.Hosts {
		if err := checkTrustOf(local, fmt.Sprintf("hosts[%d].dsn", i), h.DSN); err != nil {
			return err
		}
		for k, dsn := range h.Replicas {
			if err := checkTrustOf(local, fmt.Sprintf("hosts[%d].replicas[%d]", i, k), dsn); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkTrustOf(local shards.Store, field, dsn string) error {
	if whole := variables.FindString(dsn); whole == dsn && named(local.Variables, variableName(whole)) {
		return nil // this machine defines all of it
	}
	parts, ok := takeApart(dsn)
	if !ok {
		return &shards.FieldError{Field: field, Found: "a DSN that cannot be parsed", Expected: "a postgres:// URL, or keywords and values"}
	}
	for _, p := range parts {
		for _, v := range variables.FindAllString(p.value+" "+p.key, -1) {
			name := variableName(v)
			if !named(local.Variables, name) && (p.key != "password" || !named([]string{"*_PASSWORD"}, name)) {
				return &shards.FieldError{
					Field: field, Found: "variable " + name + " in a DSN from the store",
					Expected: "one such as PG_A_PASSWORD as the password; or its name in store.variables of kiloshard.yaml",
				}
			}
		}
		switch {
		case p.key == "" || slices.Contains(fromStore, p.key):
		case slices.Contains(shards.LocalKeys, p.key):
			return &shards.FieldError{
				Field: field, Found: p.key + " in a DSN from the store", Expected: "none; kiloshard.yaml sets it in store.local",
			}
		default:
			return &shards.FieldError{Field: field, Found: fmt.Sprintf("%.100q in a DSN from the store", p.key), Expected: "only " + strings.Join(fromStore, ", ")}
		}
		if p.key == "host" && len(local.Hosts) > 0 && !named(local.Hosts, p.value) {
			return &shards.FieldError{
				Field: field, Found: fmt.Sprintf("host %.100q in a DSN from the store", p.value), Expected: "one in store.hosts of kiloshard.yaml",
			}
		}
	}
	return nil
}

// fromStore are the settings that a DSN from a store may have: others change what statements do in every session, or name files.
var fromStore = []string{
	"host", "port", "dbname", "database", "user", "password", "sslmode", "sslnegotiation", "sslsni", "channel_binding", "connect_timeout", "target_session_attrs",
	"application_name", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
	"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_lifetime_jitter", "pool_max_conn_idle_time", "pool_health_check_period",
	"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
}

func variableName(variable string) string {
	return strings.TrimSuffix(strings.TrimPrefix(variable, "${"), "}")
}

// named reports whether a pattern matches a name.
func named(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// setting is a setting of a DSN, with unexpanded variables.
type setting struct{ key, value string }

// takeApart returns the settings of a DSN, and false if it cannot be parsed.
func takeApart(dsn string) ([]setting, bool) {
	if strings.ContainsFunc(dsn, unicode.IsControl) || inspect(dsn) == unreadable {
		return nil, false
	}
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok || scheme != "postgres" && scheme != "postgresql" {
		return keywordsOf(dsn)
	}
	authority, query, _ := strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(authority, "/")
	settings := []setting{{"dbname", database}}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		if strings.Contains(variables.ReplaceAllString(user, ""), "$") {
			return nil, false
		}
		settings, authority = append(settings, setting{"user", user}, setting{"password", password}), authority[at+1:]
	}
	for _, address := range strings.Split(authority, ",") {
		host, port := address, ""
		if colon := strings.LastIndexByte(address, ':'); colon >= 0 && !strings.HasSuffix(address, "]") {
			host, port = address[:colon], address[colon+1:]
		}
		host, err := url.PathUnescape(host) // it may hold a comma, which separates hosts too
		if err != nil {
			return nil, false
		}
		settings = append(append(settings, hosts("host", host)...), setting{"port", port})
	}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' }) {
		key, value, _ := strings.Cut(pair, "=")
		key, err := url.PathUnescape(key)
		if err != nil || keyOf(key) == "" {
			return nil, false
		}
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		settings = append(settings, hosts(keyOf(key), value)...)
	}
	return settings, true
}

// keyOf returns a key in lower case: nothing that is refused hides behind capitals. But to pgx only "password" is the password, and
// "Password" a parameter that it tells any server.
func keyOf(key string) string {
	lower := strings.ToLower(strings.TrimSpace(key))
	if lower == "password" {
		return key
	}
	return lower
}

// hosts splits a setting that may name several hosts.
func hosts(key, value string) []setting {
	if key != "host" {
		return []setting{{key, value}}
	}
	var all []setting
	for _, host := range strings.Split(value, ",") {
		all = append(all, setting{key, host})
	}
	return all
}

// novalue reports whether a match of keyword took nothing for the value, although more comes: pgx takes that for it.
func novalue(dsn string, at []int) bool {
	return at[2] >= 0 && at[4] == at[5] && strings.TrimSpace(dsn[at[1]:]) != ""
}

// keywordsOf returns the settings of a DSN of keywords and values.
func keywordsOf(dsn string) ([]setting, bool) {
	names := variables.FindAllString(dsn, -1)
	dsn = variables.ReplaceAllString(dsn, mark)
	back := func(text string) string {
		for strings.Contains(text, mark) {
			text, names = strings.Replace(text, mark, names[0], 1), names[1:]
		}
		return text
	}
	var settings []setting
	for strings.TrimSpace(dsn) != "" {
		at := keyword.FindStringSubmatchIndex(dsn)
		if at == nil || novalue(dsn, at) {
			return nil, false
		}
		if at[2] < 0 { // variables that stand for keywords
			settings = append(settings, setting{"", back(dsn[at[0]:at[1]])})
		} else {
			settings = append(settings, hosts(keyOf(dsn[at[2]:at[3]]), strings.Trim(back(dsn[at[4]:at[5]]), "'"))...)
		}
		dsn = dsn[at[1]:]
	}
	if !slices.ContainsFunc(settings, func(s setting) bool { return s.key == "host" }) {
		settings = append(settings, setting{"host", ""}) // the machine's default
	}
	return settings, true
}
