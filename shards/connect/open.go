package connect

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect/internal/guard"
)

// defaultLimit is how long a connection to one address may take if the DSN has no connect_timeout, and how long the
// host's credentials may take.
const defaultLimit = 30 * time.Second

// Open opens a session for our own statements on the host. It states all settings that these take for granted, whatever role,
// database and DSN have, but for a lock_timeout of the DSN. adjust may change the config before the host's credentials are added;
// it may be nil.
// ctx governs the opening; also, each address of the host has the connect_timeout of the DSN, 30 s without one. Several addresses are tried side by
// side: the session leads to the primary that was promoted last among those that answer soon, or if there is none to the first in the DSN.
//
// It checks whose shards a host of a map holds. The error is an [Error], [ErrPooler] if a pooler is at the address, an [IdentityError],
// [ErrSilent], or that of ctx.
//
// A statement has no time limit. But if it has received nothing for the connect_timeout, another connection checks whether
// the host still answers. If that gets no answer within five times as long, the statement fails with [ErrSilent].
func Open(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	return openChecked(ctx, host, adjust, checkIdentity)
}

// OpenAnyCluster is [Open] for a caller that checks itself whose shards the host holds.
func OpenAnyCluster(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	return openChecked(ctx, host, adjust, checkAnyCluster)
}

type checker func(context.Context, *pgconn.PgConn, shards.Host) error

func openChecked(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig), check checker) (*pgx.Conn, error) {
	host = host.ForCommands()
	best, err := openNewest(ctx, host, func(ctx context.Context, at shards.Host) (*pgx.Conn, error) { return open(ctx, at, adjust, check) }, (*pgx.Conn).PgConn)
	return best.session, err
}

// open opens a session at a host's one address.
func open(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig), check checker) (*pgx.Conn, error) {
	l := &logins{host: host, needsServer: true}
	config, err := l.config(ctx, func(config *pgx.ConnConfig) {
		stateAll(&config.Config)
		if adjust != nil {
			adjust(config)
		}
	})
	if err != nil {
		return nil, err
	}
	lookout := l.attend(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, l.explain(err)
	}
	lookout.opened(l, config, conn.PgConn())
	if err = check(ctx, conn.PgConn(), host); err == nil {
		err = state(ctx, conn.PgConn(), later)
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// OpenPlain opens a session for the SQL of users, without pgx's types and statements: settings that SQL may count on, such as its
// timeouts and TimeZone, are those of role and database. It states the others, and [CheckRole] has to follow a RESET ALL.
func OpenPlain(ctx context.Context, host shards.Host, adjust func(*pgconn.Config)) (*pgconn.PgConn, error) {
	host = host.ForCommands()
	best, err := openNewest(ctx, host, func(ctx context.Context, at shards.Host) (*pgconn.PgConn, error) { return openPlain(ctx, at, adjust) }, itself)
	return best.session, err
}

// openPlain is [OpenPlain] for a host with one address.
func openPlain(ctx context.Context, host shards.Host, adjust func(*pgconn.Config)) (*pgconn.PgConn, error) {
	l := &logins{host: host, needsServer: true}
	conn, err := l.connect(ctx, func(config *pgx.ConnConfig) {
		stateTransactions(&config.Config)
		if adjust != nil {
			adjust(&config.Config)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := state(ctx, conn, CheckRole); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// openBare opens a session at a host's one address, with the settings of the DSN alone.
func openBare(ctx context.Context, host shards.Host) (*pgconn.PgConn, error) {
	return (&logins{host: host}).connect(ctx, nil)
}

// connect connects to a host's one address, and checks whose shards it holds.
func (l *logins) connect(ctx context.Context, adjust func(*pgx.ConnConfig)) (*pgconn.PgConn, error) {
	config, err := l.config(ctx, adjust)
	if err != nil {
		return nil, err
	}
	lookout := l.attend(config)
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return nil, l.explain(err)
	}
	lookout.opened(l, config, conn)
	if err := checkIdentity(ctx, conn, l.host); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// config returns the config for one connection, credentials included. adjust, which may be nil, changes it before.
func (l *logins) config(ctx context.Context, adjust func(*pgx.ConnConfig)) (*pgx.ConnConfig, error) {
	pool, err := parse(l.host)
	if err != nil {
		return nil, err
	}
	config := pool.ConnConfig
	if adjust != nil {
		adjust(config)
	}
	return config, l.prepare(ctx, config, parts{}, nil)
}

// DefaultAuth is the require_auth of a host that TLS does not verify, and of one from a store: an impostor there gets neither the
// password nor an MD5 hash of it, which is easy to guess from.
const DefaultAuth = "!password,!md5"

// parse parses a host's DSN with its present variables. pgxpool's parser keeps settings for pgx and for
// pools out of the server's parameters.
func parse(host shards.Host) (*pgxpool.Config, error) {
	_, config, err := parseMode(host)
	if err != nil {
		return nil, err
	}
	if err := checkPassfile(host, config); err != nil {
		return nil, err
	}
	if config.ConnConfig.ConnectTimeout <= 0 {
		config.ConnConfig.ConnectTimeout = defaultLimit
	}
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // as pgx expects
	guard.Login(&config.ConnConfig.Config)
	_, fromStore := host.Store()
	if config.ConnConfig.RequireAuth == "" && (fromStore || !verified(&config.ConnConfig.Config)) {
		config.ConnConfig.RequireAuth = DefaultAuth
	}
	return config, nil
}

// verified reports whether the config checks the server's certificate at all its addresses.
func verified(config *pgconn.Config) bool {
	checks := func(c *tls.Config) bool { return c != nil && (!c.InsecureSkipVerify || c.VerifyPeerCertificate != nil) }
	for _, fallback := range config.Fallbacks {
		if !checks(fallback.TLSConfig) {
			return false
		}
	}
	return checks(config.TLSConfig)
}
