package connect

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// defaultLimit is how long a connection to one address may take if the DSN has no connect_timeout, and how long the
// host's credentials may take.
const defaultLimit = 30 * time.Second

// Open opens a session on the host. adjust may change how, before the host's credentials are asked for; it may be nil. ctx
// governs the opening; beside it each address of the host has the connect_timeout of the DSN, 30 s without one.
//
// A host of a map is asked whose shards it holds. The error is an [Error], an [IdentityError], [ErrSilent], or that of ctx.
//
// A statement may take as long as it does. While one waits, a session asks by another connection whether the host still
// answers, each time nothing has come for the connect_timeout. Where that is not answered either, in five times as long, the statement
// fails with [ErrSilent].
func Open(ctx context.Context, host shards.Host, adjust func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	l := &logins{host: host}
	config, err := l.config(ctx, adjust)
	if err != nil {
		return nil, err
	}
	lookout := l.attend(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, l.explain(err)
	}
	lookout.opened(l, config, conn.PgConn())
	if err := checkIdentity(ctx, conn.PgConn(), host, LockWait); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// OpenPlain is [Open] for a connection without pgx's types and statements.
func OpenPlain(ctx context.Context, host shards.Host, adjust func(*pgconn.Config)) (*pgconn.PgConn, error) {
	l := &logins{host: host}
	config, err := l.config(ctx, func(config *pgx.ConnConfig) {
		if adjust != nil {
			adjust(&config.Config)
		}
	})
	if err != nil {
		return nil, err
	}
	lookout := l.attend(config)
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return nil, l.explain(err)
	}
	lookout.opened(l, config, conn)
	if err := checkIdentity(ctx, conn, host, LockWait); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// config returns the config for one connection, credentials included.
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

// parse returns what a host's DSN means now. What a DSN says to pgx and to pools is no parameter of the server, whoever
// connects.
func parse(host shards.Host) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(host.ConnString())
	if err != nil {
		return nil, badDSN(err)
	}
	if err := checkPassfile(host, config); err != nil {
		return nil, err
	}
	if config.ConnConfig.ConnectTimeout <= 0 {
		config.ConnConfig.ConnectTimeout = defaultLimit
	}
	if config.ConnConfig.RequireAuth == "" && (host.IsShared() || !verified(&config.ConnConfig.Config)) {
		config.ConnConfig.RequireAuth = "!password"
	}
	return config, nil
}

// verified reports whether no server is connected to whose certificate is not checked, at any of the addresses.
func verified(config *pgconn.Config) bool {
	checks := func(c *tls.Config) bool { return c != nil && (!c.InsecureSkipVerify || c.VerifyPeerCertificate != nil) }
	for _, fallback := range config.Fallbacks {
		if !checks(fallback.TLSConfig) {
			return false
		}
	}
	return checks(config.TLSConfig)
}
