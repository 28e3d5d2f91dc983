package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
)

// CheckPasswords returns a [shards.FieldError] for the first DSN that holds a password, or may hold one. Many can read a
// store, and its history keeps a password forever.
func CheckPasswords(c shards.Config) error {
	for i, h := range c.Hosts {
		if err := checkPassword(fmt.Sprintf("hosts[%d].dsn", i), h.Name, h.DSN); err != nil {
			return err
		}
		if err := checkPassword(fmt.Sprintf("hosts[%d].direct", i), h.Name, h.Direct); err != nil {
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

func checkPassword(field, host, text string) error {
	var found string
	switch inspect(text) {
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

// MayHoldPassword reports whether an unexpanded DSN holds a password, or cannot be parsed, so that it may.
func MayHoldPassword(text string) bool { return inspect(text) != noPassword }

// finding is the result of looking for a password in a DSN.
type finding int

const (
	noPassword finding = iota
	literalPassword
	unreadable
)

var (
	keyPattern  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	hostPattern = regexp.MustCompile(`^[A-Za-z0-9._:/%,-]*$`)
	portPattern = regexp.MustCompile(`^[0-9,]*$`)
	secretNames = map[string]bool{"password": true, "sslpassword": true, "oauth_client_secret": true, "scram_client_key": true, "scram_server_key": true}
)

// inspect looks for a password in an unexpanded DSN. If in doubt it returns unreadable.
func inspect(text string) finding {
	d, err := dsn.Parse(text)
	if literal(strings.TrimSpace(text)) && (err != nil || !plain(d)) {
		return unreadable
	}
	for _, s := range d.All() {
		if secretNames[strings.ToLower(strings.TrimSpace(s.Key))] && literal(s.Value) {
			return literalPassword
		}
	}
	return noPassword
}

// literal reports whether a value is more than variables.
func literal(value string) bool { return dsn.Variable.ReplaceAllString(value, "") != "" }

// plain reports whether the settings of a DSN are those that its author meant. A / or @ that is not escaped in a
// password moves a part of the password into another setting, with the @ before the address.
func plain(d dsn.DSN) bool {
	if !d.IsURL() {
		return !slices.ContainsFunc(d.All(), func(s dsn.Setting) bool { return s.Key != "" && !keyPattern.MatchString(s.Key) })
	}
	_, user := d.Lookup("user")
	for _, s := range d.All() {
		value := dsn.Variable.ReplaceAllString(s.Value, "")
		if s.Key == "host" && !hostPattern.MatchString(value) || s.Key == "port" && !portPattern.MatchString(value) ||
			s.Key == "dbname" && strings.ContainsAny(value, "@#") || !user && s.Key != "password" && strings.Contains(value, "@") {
			return false
		}
	}
	return true
}
