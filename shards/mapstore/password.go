package mapstore

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// checkPasswords returns a [shards.FieldError] for the first DSN of a host with a password, or that may have one. Many can
// read a store, and its history keeps a password forever.
func checkPasswords(c shards.Config) error {
	for i, h := range c.Hosts {
		if err := checkPassword(fmt.Sprintf("hosts[%d].dsn", i), h.Name, h.DSN); err != nil {
			return err
		}
		for k, dsn := range h.Replicas {
			if err := checkPassword(fmt.Sprintf("hosts[%d].replicas[%d]", i, k), h.Name, dsn); err != nil {
				return err
			}
		}
	}
	return nil
}

var notInVariable = regexp.MustCompile(`[^A-Z0-9]+`)

func checkPassword(field, host, dsn string) error {
	var found string
	switch inspect(dsn) {
	case noPassword:
		return nil
	case literalPassword:
		found = "a password of host " + host + " that everybody could read"
	default:
		found = "a DSN of host " + host + " that may hold a password, since it cannot be parsed"
	}
	name := notInVariable.ReplaceAllString(strings.ToUpper(host), "_") + "_PASSWORD"
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return &shards.FieldError{
		Field: field, Found: found,
		Expected: "${" + name + "} in its place, with the password in that variable of the environment; or none, and a .pgpass or a service file",
	}
}

// finding is the result of looking for a password in a DSN.
type finding int

const (
	noPassword finding = iota
	literalPassword
	unreadable
)

// mark replaces each variable while a DSN is parsed.
const mark = "\x01"

var (
	variables   = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
	addressPart = regexp.MustCompile(`^([A-Za-z0-9._%/\x01-]*|\[[0-9A-Fa-f:.%\x01]*\])(:[0-9\x01]*)?$`)
	secretNames = map[string]bool{"password": true, "sslpassword": true, "oauth_client_secret": true, "scram_client_key": true, "scram_server_key": true}
)

// inspect looks for a password in an unexpanded DSN. If in doubt it returns unreadable.
func inspect(dsn string) finding {
	if strings.ContainsAny(dsn, mark+"\v") { // pgx takes \v for a space
		return unreadable
	}
	dsn = variables.ReplaceAllString(dsn, mark)
	if strings.Trim(dsn, mark+" ") == "" {
		return noPassword // it is in the variables
	}
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok && (scheme == "postgres" || scheme == "postgresql") {
		return inspectURL(rest)
	}
	return inspectKeywords(dsn)
}

// literal reports whether a secret value is more than variables.
func literal(value string) bool { return strings.Trim(value, mark) != "" }

func inspectURL(dsn string) finding {
	authority, rest := dsn, ""
	if end := strings.IndexAny(dsn, "/?#"); end >= 0 {
		authority, rest = dsn[:end], dsn[end:]
	}
	at := strings.IndexByte(authority, '@')
	if at >= 0 {
		if strings.IndexByte(authority[at+1:], '@') >= 0 {
			return unreadable
		}
		if _, password, ok := strings.Cut(authority[:at], ":"); ok && literal(password) {
			return literalPassword
		}
	}
	path, query, _ := strings.Cut(rest, "?")
	// A /, ? or # in a password that is not escaped puts the @ behind it.
	if strings.ContainsAny(path, "@#") || strings.ContainsRune(query, '#') || at < 0 && strings.ContainsRune(query, '@') {
		return unreadable
	}
	for _, address := range strings.Split(authority[at+1:], ",") {
		if !addressPart.MatchString(address) {
			return unreadable
		}
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return unreadable
	}
	for name, all := range values {
		if secretNames[strings.ToLower(strings.TrimSpace(name))] && literal(strings.Join(all, "")) {
			return literalPassword
		}
	}
	return noPassword
}

// keyword is one keyword with its value, quoted or not, or a variable in the place of any number of them.
var keyword = regexp.MustCompile(`^\s*(?:\x01+(?:\s|$)|([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?:\s|$))`)

func inspectKeywords(dsn string) finding {
	for strings.TrimSpace(dsn) != "" {
		at := keyword.FindStringSubmatchIndex(dsn)
		if at == nil || novalue(dsn, at) {
			return unreadable
		}
		if at[2] >= 0 {
			name, value := dsn[at[2]:at[3]], strings.Trim(dsn[at[4]:at[5]], "'")
			if secretNames[strings.ToLower(name)] && literal(value) {
				return literalPassword
			}
		}
		dsn = dsn[at[1]:]
	}
	return noPassword
}
