package connect

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// libpqVariables are the settings of a DSN that libpq also reads from its environment, without those for the address and
// the user.
var libpqVariables = map[string]string{
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY",
	"sslcertmode": "PGSSLCERTMODE", "sslnegotiation": "PGSSLNEGOTIATION", "sslsni": "PGSSLSNI", "connect_timeout": "PGCONNECT_TIMEOUT",
	"target_session_attrs": "PGTARGETSESSIONATTRS", "channel_binding": "PGCHANNELBINDING", "passfile": "PGPASSFILE",
}

// Environment returns environment variables that make a Postgres program, such as psql, connect to the host as [Open] does:
// with its credentials and its certificates. One of them is the password. If the host has several addresses they name the
// one to which [Open] connects. The error is an [Error].
func Environment(ctx context.Context, host shards.Host) ([]string, error) {
	host = host.ForCommands()
	all, _, err := Addresses(host)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		best, err := newestOf(ctx, host)
		if err != nil {
			return nil, err
		}
		host = At(host, best.at.host, best.at.port)
	}
	config, err := (&logins{host: host}).config(ctx, nil)
	if err != nil {
		return nil, err
	}
	environment := []string{
		"PGHOST=" + config.Host, fmt.Sprintf("PGPORT=%d", config.Port), "PGUSER=" + config.User, "PGDATABASE=" + config.Database,
		"PGREQUIREAUTH=" + config.RequireAuth, // empty allows all methods; libpq 16 and later read it
	}
	if config.Password != "" {
		environment = append(environment, "PGPASSWORD="+config.Password)
	}
	values, err := settingsOf(host)
	if err != nil {
		return nil, err
	}
	byDefault, err := hasDefaultMode(host, &config.Config)
	if err != nil {
		return nil, err
	}
	if byDefault {
		values["sslmode"] = defaultMode
	}
	for key, variable := range libpqVariables {
		if value, ok := values[key]; ok {
			environment = append(environment, variable+"="+value)
		}
	}
	return environment, nil
}
