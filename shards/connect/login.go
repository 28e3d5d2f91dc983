package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
)

// Login is how a pool logs in on its host: with what the DSN and the credentials say at each connect. It is safe for
// concurrent use.
type Login struct {
	host     *shards.Host                   // package fmt prints pointers in here as addresses
	made     place                          // by ForPool
	user     string                         // likewise
	password *string                        // likewise
	accepted atomic.Pointer[pgx.ConnConfig] // with which the latest connection was made
}

// place is where a config leads to. Its parts belong together: TLS goes by the name of the host.
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

// ForPool returns the config of a pool for the host, to be adjusted and then given to [Login.Attend]. The error is an
// [Error] about the DSN.
func ForPool(host shards.Host) (*Login, *pgxpool.Config, error) {
	config, err := parse(host)
	if err != nil {
		return nil, nil, err
	}
	c := config.ConnConfig
	password := c.Password
	return &Login{host: &host, made: placeOf(c), user: c.User, password: &password}, config, nil
}

// Attend has the pool to be made read at each connect what the DSN, the files that it names and the credentials say then.
// What the caller has adjusted since [ForPool] stays: the user, the password, or where the connection goes with its TLS.
// A BeforeConnect of the caller's has the last word.
func (l *Login) Attend(config *pgxpool.Config) {
	c := config.ConnConfig
	samePlace, sameUser, samePassword := placeOf(c).equal(l.made), c.User == l.user, c.Password == *l.password
	before, after := config.BeforeConnect, config.AfterConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		fresh, err := l.read(ctx)
		if err != nil {
			return err
		}
		if samePlace {
			placeOf(fresh).put(c)
		}
		if sameUser {
			c.User = fresh.User
		}
		if samePassword {
			c.Password = fresh.Password
		}
		if before == nil {
			return nil
		}
		return before(ctx, c)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		l.accepted.Store(conn.Config())
		if err := checkIdentity(ctx, conn.PgConn(), *l.host); err != nil {
			return err
		}
		if after == nil {
			return nil
		}
		return after(ctx, conn)
	}
}

// read returns what counts for a connection that is about to be made.
func (l *Login) read(ctx context.Context) (*pgx.ConnConfig, error) {
	if earlier, ok := ctx.Value(earlierKey{}).(*pgx.ConnConfig); ok {
		return earlier.Copy(), nil
	}
	return prepare(ctx, *l.host, nil)
}

type earlierKey struct{} // of a context: its value is the config to connect with

// Try calls fn, which needs a connection of the pool. If there is none because the server refuses the credentials, or
// because what the DSN names cannot be read, and something else was accepted before, it calls fn again, with a context that
// has the pool use that; and if that is refused as well, which then is forgotten, a last time as at first: in between the
// password may have been changed on the server. So a password may be changed where it is kept before it is changed on the
// server. The error is that of the first call, an [Error] if no connection could be made.
func (l *Login) Try(ctx context.Context, fn func(context.Context) error) error {
	earlier := l.accepted.Load()
	err := fn(ctx)
	if err == nil || explained(err) && !errors.Is(err, shards.ErrBadDSN) {
		return err
	}
	used := configOf(err)
	err = explain(err, *l.host)
	switch {
	case earlier == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, shards.ErrBadDSN):
	case !errors.Is(err, ErrCredentials) || used == nil || used.User == earlier.User && used.Password == earlier.Password:
		return err
	}
	again := fn(context.WithValue(ctx, earlierKey{}, earlier))
	if again == nil {
		return nil
	}
	if !explained(again) && errors.Is(explain(again, *l.host), ErrCredentials) {
		l.accepted.CompareAndSwap(earlier, nil)
		if fn(ctx) == nil {
			return nil
		}
	}
	return err
}

// Open opens a session as the pool does, whose config was given to [Login.Attend], and beside it: for what keeps one
// session. ctx governs the opening. It is [Login.Try], whose errors it returns.
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
