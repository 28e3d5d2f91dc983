package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// Login logs a pool in to its host, with the DSN and the credentials as they are at each connect. It is safe for
// concurrent use.
type Login struct {
	*logins          // package fmt prints pointers in here as addresses
	made     place   // by ForPool
	user     string  // likewise
	password *string // likewise
	newest   *newest // of [Login.AttendNewest]; else nil

	accepted atomic.Pointer[accepted] // configs that the server accepted; nil before the first
}

// place is the target of a config. Its parts belong together: TLS verifies the name of the host.
type place struct {
	first     pgconn.FallbackConfig
	fallbacks []*pgconn.FallbackConfig
}

func placeOf(c *pgx.ConnConfig) place {
	return place{pgconn.FallbackConfig{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}, slices.Clone(c.Fallbacks)}
}

func (p place) equal(other place) bool {
	return p.first == other.first && slices.Equal(p.fallbacks, other.fallbacks)
}

func (p place) put(c *pgx.ConnConfig) {
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = p.first.Host, p.first.Port, p.first.TLSConfig, p.fallbacks
}

// ForPool returns the config of a pool for the host. The caller may adjust it, and then passes it to [Login.Attend]. The
// error is an [Error] about the DSN.
func ForPool(host shards.Host) (*Login, *pgxpool.Config, error) {
	host.Direct = "" // a pool is a service's
	config, err := parse(host)
	if err != nil {
		return nil, nil, err
	}
	c := config.ConnConfig
	password := c.Password
	return &Login{logins: &logins{host: host}, made: placeOf(c), user: c.User, password: &password}, config, nil
}

// Attend makes the pool read the DSN, the files that it names and the credentials at each connect. Settings that the
// caller has changed since [ForPool] stay: the user, the password, or the address with its TLS. The caller's BeforeConnect
// runs last.
func (l *Login) Attend(config *pgxpool.Config) {
	c := config.ConnConfig
	samePlace, keep := placeOf(c).equal(l.made), parts{user: c.User != l.user, password: c.Password != *l.password}
	before, after := config.BeforeConnect, config.AfterConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		fresh, earlier, err := l.read(ctx)
		if err != nil {
			return err
		}
		if samePlace {
			placeOf(fresh).put(c)
		}
		if !keep.user {
			c.User = fresh.User
		}
		if err := l.goToNewest(ctx, c); err != nil {
			return err
		}
		if err := l.prepare(ctx, c, keep, earlier); err != nil || before == nil {
			return err
		}
		return before(ctx, c)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		l.accept(conn)
		if err := checkIdentity(ctx, conn.PgConn(), l.host); err != nil {
			return err
		}
		if after == nil {
			return nil
		}
		return after(ctx, conn)
	}
}

// read returns the config of a connection that is about to be made, without credentials, and the accepted ones if the
// connection must use them.
func (l *Login) read(ctx context.Context) (*pgx.ConnConfig, *accepted, error) {
	if earlier, ok := ctx.Value(earlierKey{}).(*accepted); ok {
		return earlier.latest.Copy(), earlier, nil
	}
	config, err := parse(l.host)
	if err != nil {
		return nil, nil, err
	}
	return config.ConnConfig, nil, nil
}

// accept records the config of a connection that was made.
func (l *Login) accept(conn *pgx.Conn) {
	config := conn.Config()
	to, err := l.names.of(&config.Config, conn.PgConn().Conn())
	for {
		old := l.accepted.Load()
		now := &accepted{latest: config, at: map[address]*pgx.ConnConfig{}}
		if old != nil {
			maps.Copy(now.at, old.at)
		}
		if err == nil {
			now.at[to] = config
		}
		if l.accepted.CompareAndSwap(old, now) {
			return
		}
	}
}

type earlierKey struct{} // of a context: its value is the *accepted to connect with

// Try calls fn, which needs a connection of the pool, up to three times. If the server refuses the credentials, or a file
// that the DSN names cannot be read, and other credentials were accepted before, it calls fn again with a context that
// makes the pool use those. If they are refused as well it forgets them and calls fn as at first: the password may have
// changed on the server meanwhile. So a password may change at its source before it changes on the server. The error is
// that of the first call, an [Error] if no connection could be made.
func (l *Login) Try(ctx context.Context, fn func(context.Context) error) error {
	earlier := l.accepted.Load()
	err := fn(ctx)
	if err == nil || explained(err) && !errors.Is(err, shards.ErrBadDSN) {
		return err
	}
	used := configOf(err)
	err = l.explain(err)
	switch {
	case earlier == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, shards.ErrBadDSN):
	case !errors.Is(err, ErrCredentials) || used == nil || earlier.has(used):
		return err
	}
	again := fn(context.WithValue(ctx, earlierKey{}, earlier))
	if again == nil {
		return nil
	}
	if !explained(again) && errors.Is(l.explain(again), ErrCredentials) {
		l.accepted.CompareAndSwap(earlier, nil)
		if fn(ctx) == nil {
			return nil
		}
	}
	return err
}

// Open opens a session as the pool with the given config does, but outside the pool, for a caller that keeps one session.
// The config was passed to [Login.Attend]. ctx governs the opening. The errors are those of [Login.Try].
func (l *Login) Open(ctx context.Context, pool *pgxpool.Config) (*pgx.Conn, error) {
	var conn *pgx.Conn
	err := l.Try(ctx, func(ctx context.Context) error {
		config := pool.ConnConfig.Copy()
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return err
		}
		opened, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		if err := pool.AfterConnect(ctx, opened); err != nil {
			_ = opened.Close(ctx)
			return err
		}
		conn = opened
		return nil
	})
	return conn, err
}

// Format prints the host's name and nothing else for every verb.
func (l *Login) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "login on "+l.host.Name) }
