package connect

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// libpqVariables are the settings of a DSN that libpq reads from its environment too, and that say more than where to connect
// and as whom.
var libpqVariables = map[string]string{
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY",
	"sslnegotiation": "PGSSLNEGOTIATION", "sslsni": "PGSSLSNI", "connect_timeout": "PGCONNECT_TIMEOUT",
	"target_session_attrs": "PGTARGETSESSIONATTRS", "channel_binding": "PGCHANNELBINDING", "passfile": "PGPASSFILE",
}

// Environment returns the variables by which a program of Postgres's own, such as psql, connects to the host as [Open] does:
// with its credentials, its certificates, and all its addresses. One of them is the password. The error is an [Error].
func Environment(ctx context.Context, host shards.Host) ([]string, error) {
	config, err := prepare(ctx, host, nil)
	if err != nil {
		return nil, err
	}
	hosts, ports := []string{config.Host}, []string{fmt.Sprint(config.Port)}
	for _, f := range config.Fallbacks { // with TLS and without, at each address
		if last := len(hosts) - 1; f.Host != hosts[last] || fmt.Sprint(f.Port) != ports[last] {
			hosts, ports = append(hosts, f.Host), append(ports, fmt.Sprint(f.Port))
		}
	}
	environment := []string{
		"PGHOST=" + strings.Join(hosts, ","), "PGPORT=" + strings.Join(ports, ","), "PGUSER=" + config.User, "PGDATABASE=" + config.Database,
	}
	if config.Password != "" {
		environment = append(environment, "PGPASSWORD="+config.Password)
	}
	for name, value := range settings(host.ConnString()) {
		if variable, ok := libpqVariables[name]; ok {
			environment = append(environment, variable+"="+value)
		}
	}
	return environment, nil
}

// keywordValue is a keyword of a DSN that is no URL, with its value, quoted or not.
var keywordValue = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))`)

// settings returns what a DSN that could be parsed sets by name.
func settings(dsn string) map[string]string {
	found := map[string]string{}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		_, query, _ := strings.Cut(dsn, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			return found
		}
		for name := range values {
			found[name] = values.Get(name)
		}
		return found
	}
	for _, m := range keywordValue.FindAllStringSubmatch(dsn, -1) {
		found[m[1]] = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(m[2] + m[3])
	}
	return found
}
