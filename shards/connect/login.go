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

// Login is how a pool logs in on its host: with what the DSN and the credentials say at each connect. It is safe for
// concurrent use.
type Login struct {
	*logins          // package fmt prints pointers in here as addresses
	made     place   // by ForPool
	user     string  // likewise
	password *string // likewise

	accepted atomic.Pointer[accepted] // what connections were made with; nil before the first
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
	return &Login{logins: &logins{host: host}, made: placeOf(c), user: c.User, password: &password}, config, nil
}

// Attend has the pool to be made read at each connect what the DSN, the files that it names and the credentials say then.
// What the caller has adjusted since [ForPool] stays: the user, the password, or where the connection goes with its TLS.
// A BeforeConnect of the caller's has the last word.
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
		if err := l.prepare(ctx, c, keep, earlier); err != nil || before == nil {
			return err
		}
		return before(ctx, c)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		l.accept(conn)
		if err := checkIdentity(ctx, conn.PgConn(), l.host, LockWait); err != nil {
			return err
		}
		if after == nil {
			return nil
		}
		return after(ctx, conn)
	}
}

// read returns what counts for a connection that is about to be made, but for its credentials, and those that were accepted
// before if they are to be used.
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

// accept notes what a connection was made with.
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
