package connect

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
)

// logins provides the credentials for connections to a host. Credentials for one address, from a function or a passfile,
// are sent to no other address. It is safe for concurrent use.
type logins struct {
	host        shards.Host
	needsServer bool // sessions have settings that a pooler refuses
	names       resolved
	sent        secrets
}

// parts says which parts of a config must not change, because the caller has set them.
type parts struct{ user, password bool }

// prepare adds the credentials to a config that is complete without them. With several addresses it adds them during
// connect, when the address is known: until then the config has no password.
func (l *logins) prepare(ctx context.Context, c *pgx.ConnConfig, keep parts, earlier *accepted) error {
	if all := addressesOf(&c.Config); len(all) == 1 {
		ctx, cancel := context.WithTimeout(ctx, max(c.ConnectTimeout, defaultLimit))
		defer cancel()
		return l.put(ctx, &c.Config, all[0], keep, earlier)
	}
	if !keep.password {
		c.Password = ""
	}
	l.names.watch(&c.Config)
	after := c.AfterNetConnect
	c.AfterNetConnect = func(ctx context.Context, c *pgconn.Config, conn net.Conn) (net.Conn, error) {
		to, err := l.names.of(c, conn)
		if err == nil {
			err = l.put(ctx, c, to, keep, earlier)
		}
		if err != nil || after == nil {
			return conn, err
		}
		return after(ctx, c, conn)
	}
	return nil
}

// put puts the credentials for one address into a config. earlier are accepted credentials to reuse, nil to get new
// ones.
func (l *logins) put(ctx context.Context, c *pgconn.Config, to address, keep parts, earlier *accepted) error {
	found, err := l.find(ctx, to, earlier)
	if err != nil {
		return err
	}
	if !keep.user && found.User != "" {
		c.User = found.User
	}
	if !keep.password {
		c.Password = found.Password
	}
	l.sent.add(c.User, c.Password)
	return nil
}

// find returns the credentials for one address.
func (l *logins) find(ctx context.Context, to address, earlier *accepted) (shards.Credentials, error) {
	if earlier != nil {
		if one := earlier.at[to]; one != nil {
			return shards.Credentials{User: one.User, Password: one.Password}, nil
		}
	}
	host := At(l.host, to.host, to.port)
	config, err := parse(host)
	if err != nil {
		return shards.Credentials{}, err
	}
	found := shards.Credentials{User: config.ConnConfig.User, Password: config.ConnConfig.Password}
	if ofService(host, config, to) {
		found.Password = ""
	}
	if !host.HasCredentials() {
		return found, nil
	}
	made, err := withoutPassword(host).Credentials(ctx)
	if err != nil {
		return shards.Credentials{}, &Error{text: "no credentials: " + err.Error(), Err: fmt.Errorf("%w: %w", shards.ErrNoCredentials, err)}
	}
	if made.User != "" {
		found.User = made.User
	}
	if made.Password != "" {
		found.Password = made.Password
	}
	return found, nil
}

// withoutPassword returns a host from [At] for a function of the user's, which may keep or print it: At fills in variables.
func withoutPassword(host shards.Host) shards.Host {
	if d, err := dsn.Parse(host.DSN); err == nil && d.Get("password") != "" {
		host.DSN = dsn.With(host.DSN, "password", "")
	}
	return host
}

// ofService reports whether the password belongs to a service that does not name the address, in a DSN from a store. Such
// a password must not be sent to that address.
func ofService(host shards.Host, config *pgxpool.Config, to address) bool {
	store, ok := host.Store()
	if !ok || config.ConnConfig.Password == "" {
		return false
	}
	service, err := pgconn.ParseConfig(serviceAlone(store))
	return err != nil || service.Password == config.ConnConfig.Password && service.Password != os.Getenv("PGPASSWORD") && //nolint:forbidigo // pgx reads it as well
		!slices.Contains(addressesOf(service), to)
}

// serviceAlone returns a DSN that has only the service that this machine names, in [shards.Store.Local] or in PGSERVICE.
func serviceAlone(store shards.Store) string {
	store.DSN = dsn.New("passfile", os.DevNull).String()
	for _, key := range []string{"service", "servicefile"} {
		if value, ok := store.Local[key]; ok {
			store.DSN = dsn.With(store.DSN, key, value)
		}
	}
	return store.ConnString()
}

// secrets are the passwords of the latest connections, which are removed from errors. It is safe for concurrent use.
type secrets struct {
	mu   sync.Mutex
	all  []string
	last shards.Credentials // with which the latest connection was tried
}

const mostSecrets = 16

func (s *secrets) add(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = shards.Credentials{User: user, Password: password}
	if password == "" || slices.Contains(s.all, password) {
		return
	}
	s.all = append(s.all, password)
	s.all = s.all[max(0, len(s.all)-mostSecrets):]
}

// accepted returns the credentials that the only connection was made with.
func (s *secrets) accepted() shards.Credentials {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *secrets) latest() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// accepted are configs with which connections were made: the latest one, and the latest one to each address.
type accepted struct {
	latest *pgx.ConnConfig
	at     map[address]*pgx.ConnConfig
}

// has reports whether a config has the user and the password of one of them.
func (a *accepted) has(c *pgconn.Config) bool {
	for _, one := range a.at {
		if one.User == c.User && one.Password == c.Password {
			return true
		}
	}
	return a.latest.User == c.User && a.latest.Password == c.Password
}
