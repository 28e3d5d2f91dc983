package connect

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/jackc/pgservicefile"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
)

// settingsOf returns what the DSN of a host, its service and the environment set, in this order, without pgx's defaults.
func settingsOf(host shards.Host) (map[string]string, error) {
	d, err := dsn.Parse(host.ConnString())
	if err != nil {
		return nil, &Error{text: shards.ErrBadDSN.Error(), Err: shards.ErrBadDSN}
	}
	values := map[string]string{}
	for key, variable := range libpqVariables {
		if value := getenv(variable); value != "" {
			values[key] = value
		}
	}
	if service, ok := lookup(d, "service", "PGSERVICE"); ok {
		settings, err := serviceSettings(d, service)
		if err != nil {
			return nil, badDSN(err)
		}
		maps.Copy(values, settings)
	}
	for _, s := range d.All() {
		values[s.Key] = s.Value
	}
	return values, nil
}

func getenv(variable string) string { return os.Getenv(variable) } //nolint:forbidigo // pgx reads it as well

// lookup returns a value of a DSN or of the environment, and whether there is one.
func lookup(d dsn.DSN, key, variable string) (string, bool) {
	if value, ok := d.Lookup(key); ok {
		return value, true
	}
	value := getenv(variable)
	return value, value != ""
}

// serviceSettings returns the settings of a service.
func serviceSettings(d dsn.DSN, name string) (map[string]string, error) {
	file, ok := lookup(d, "servicefile", "PGSERVICEFILE")
	if !ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		file = filepath.Join(home, ".pg_service.conf")
	}
	all, err := pgservicefile.ReadServicefile(file)
	if err != nil {
		return nil, err
	}
	service, err := all.GetService(name)
	if err != nil {
		return nil, err
	}
	return service.Settings, nil
}

// securing are the settings that [Secure] returns in this order, with the first release of libpq that has them.
var securing = []struct {
	key   string
	since int
}{
	{"sslmode", 0},
	{"sslrootcert", 0},
	{"sslcert", 0},
	{"sslkey", 0},
	{"sslsni", 14},
	{"sslcertmode", 16},
	{"sslnegotiation", 17},
	{"channel_binding", 13},
	{"require_auth", 16},
	{"connect_timeout", 0},
	{"target_session_attrs", 0},
}

// Secure returns keywords and values with which libpq of this major release, on another machine, checks the host and what it asks for
// as [Open] does here: those of the DSN, of its service and of the environment. They have no address, user or password. Files have the
// names that they have here. If that libpq lacks a setting without which it would check less, the error is a [shards.FieldError].
func Secure(host shards.Host, libpq int) (string, error) {
	host = host.ForCommands()
	config, err := parse(host)
	if err != nil {
		return "", err
	}
	text, err := withMode(host)
	if err != nil {
		return "", err
	}
	// TLS of a mode does not depend on the address, but for a socket, which has none.
	overTCP, err := pgxpool.ParseConfig(dsn.With(text, "host", "localhost", "port", "5432"))
	if err != nil {
		return "", badDSN(err)
	}
	values, err := settingsOf(host)
	if err != nil {
		return "", err
	}
	for _, key := range []string{"require_auth", "sslcertmode"} {
		if values[key] != "" && values[key] != "allow" && libpq < 16 {
			return "", &shards.FieldError{
				Field: "dsn", Found: fmt.Sprintf("%s=%s of host %s, which Postgres %d cannot ask for when it connects there", key, values[key], host.Name, libpq),
				Expected: "Postgres 16 or later, or a DSN without it",
			}
		}
	}
	values["sslmode"], values["require_auth"] = modeOf(&overTCP.ConnConfig.Config), config.ConnConfig.RequireAuth
	if !withCertificate(&overTCP.ConnConfig.Config) {
		values["sslcert"], values["sslkey"] = noCertificate, ""
	}
	var d dsn.DSN
	for _, s := range securing {
		if values[s.key] != "" && libpq >= s.since {
			d.Set(s.key, values[s.key])
		}
	}
	return d.String(), nil
}

// noCertificate is a file that does not exist: libpq then connects without a certificate. Without a setting it looks into the home
// directory of the server's user, and fails if it may not.
const noCertificate = "/nonexistent"

// withCertificate reports whether a config shows a certificate to servers that ask for it. One without TLS may.
func withCertificate(c *pgconn.Config) bool {
	used := c.TLSConfig
	for _, f := range c.Fallbacks {
		used = cmp.Or(used, f.TLSConfig)
	}
	return used == nil || len(used.Certificates) > 0
}

// modeOf returns the sslmode with which pgx makes the TLS of a config with one address.
func modeOf(c *pgconn.Config) string {
	switch {
	case c.TLSConfig == nil && len(c.Fallbacks) == 0:
		return "disable"
	case c.TLSConfig == nil:
		return "allow"
	case len(c.Fallbacks) > 0:
		return "prefer"
	case !c.TLSConfig.InsecureSkipVerify:
		return "verify-full"
	case c.TLSConfig.VerifyPeerCertificate != nil:
		return "verify-ca"
	}
	return "require"
}
