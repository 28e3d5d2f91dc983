package connect

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
)

// defaultMode is the sslmode of a host on another machine if nothing sets one: a certificate proves that the server is the one that
// the DSN names.
const defaultMode = "verify-full"

// withMode returns the DSN of a host with the sslmode that it has here: its own, that of its service or of PGSSLMODE, or the default.
// Without one it means that TLS is used if the server supports it. The error is an [Error].
func withMode(host shards.Host) (string, error) {
	text, _, err := parseMode(host)
	return text, err
}

// parseMode is [withMode], and returns what pgx reads in the DSN.
func parseMode(host shards.Host) (text string, config *pgxpool.Config, err error) {
	text = host.ConnString()
	if config, err = pgxpool.ParseConfig(text); err != nil {
		return "", nil, badDSN(err)
	}
	byDefault, err := hasDefaultMode(host, &config.ConnConfig.Config)
	if err != nil || !byDefault {
		return text, config, err
	}
	text = dsn.With(text, "sslmode", defaultMode)
	if config, err = pgxpool.ParseConfig(text); err != nil {
		return "", nil, badDSN(err)
	}
	return text, config, nil
}

// hasDefaultMode reports whether nothing sets an sslmode for a host, and one of the addresses of its config may be another machine. All
// its addresses then have [defaultMode].
func hasDefaultMode(host shards.Host, config *pgconn.Config) (bool, error) {
	if !slices.ContainsFunc(addressesOf(config), address.isElsewhere) {
		return false, nil
	}
	values, err := settingsOf(host)
	return err == nil && values["sslmode"] == "", err
}

// isElsewhere reports whether an address may be another machine: it is no Unix socket, no loopback address and not localhost.
func (a address) isElsewhere() bool {
	if network, _ := pgconn.NetworkAddress(a.host, a.port); network == "unix" {
		return false
	}
	if ip, err := netip.ParseAddr(a.host); err == nil {
		return !ip.Unmap().IsLoopback()
	}
	return !strings.EqualFold(a.host, "localhost")
}
