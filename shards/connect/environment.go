package connect

import (
	"context"
	"errors"
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
// first to which [Open] connects. The error is an [Error].
func Environment(ctx context.Context, host shards.Host) ([]string, error) {
	parsed, err := parse(host)
	if err != nil {
		return nil, err
	}
	if all := addressesOf(&parsed.ConnConfig.Config); len(all) > 1 {
		if host, err = answering(ctx, host, all); err != nil {
			return nil, err
		}
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

// answering returns the host at the first of its addresses that accepts a connection.
func answering(ctx context.Context, host shards.Host, all []address) (shards.Host, error) {
	var errs []error
	for _, a := range all {
		at := At(host, a.host, a.port)
		conn, err := OpenPlain(ctx, at, nil)
		if err == nil {
			return at, conn.Close(ctx)
		}
		errs = append(errs, err)
	}
	return host, errors.Join(errs...)
}
