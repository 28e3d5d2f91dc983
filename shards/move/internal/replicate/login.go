package replicate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// HasPassword reports whether a text holds a password, as a URL may, which is neither keywords nor values of libpq.
func HasPassword(login string) bool {
	d, err := dsn.Parse(login)
	return err != nil || d.IsURL() || slices.ContainsFunc(d.All(), func(s dsn.Setting) bool { return s.Key == "password" || s.Key == "sslpassword" })
}

// conninfo returns how the target logs in to the source: the addresses, the database and the user of the source's DSN, with TLS and
// checks as strict as ours, and [Login.Settings]; with a password only as [Login.WithPassword] says. The address of our own session comes
// first: a subscription tries them in turn and has no time limit for one that hangs.
func (s Stream) conninfo(ctx context.Context) (string, error) {
	c := s.From.Config()
	hosts, numbers, err := connect.Addresses(s.SourceHost)
	if err != nil {
		return "", err
	}
	var ports []string
	for i, n := range numbers {
		ports = append(ports, strconv.Itoa(int(n)))
		if hosts[i] == c.Host && n == c.Port {
			hosts[0], hosts[i], ports[0], ports[i] = hosts[i], hosts[0], ports[i], ports[0]
		}
	}
	var release int
	if _, err := fmt.Sscan(s.To.PgConn().ParameterStatus("server_version"), &release); err != nil {
		return "", fmt.Errorf("release of Postgres on %s: %w", s.Target, err)
	}
	secure, err := connect.Secure(s.SourceHost, release)
	if err != nil {
		return "", err
	}
	d := dsn.New("host", strings.Join(hosts, ","), "port", strings.Join(ports, ","), "dbname", c.Database, "user", c.User, "application_name", s.Slot())
	settings, err := dsn.Parse(secure)
	if err != nil {
		return "", err
	}
	for _, ours := range settings.All() {
		d.Set(ours.Key, ours.Value)
	}
	if s.Login.WithPassword {
		password, err := passwordOf(ctx, s.SourceHost, c)
		if err != nil {
			return "", err
		}
		d.Set("password", password)
	}
	login, err := dsn.Parse(s.Login.Settings)
	if err != nil {
		return "", err
	}
	for _, own := range login.All() {
		if err := notWeaker(own, d.Get(own.Key)); err != nil {
			return "", err
		}
		d.Set(own.Key, own.Value)
	}
	return d.String(), nil
}

// notWeaker returns an error for a setting of [Login.Settings] that checks less than the source's DSN does.
func notWeaker(s dsn.Setting, ours string) error {
	switch {
	case s.Value == ours:
		return nil
	case s.Key == "sslmode" && slices.Index(dsn.Modes, s.Value) < slices.Index(dsn.Modes, ours):
	case s.Key == "channel_binding" && ours == "require":
	case s.Key == "require_auth" && ours != "" && ours != connect.DefaultAuth:
	default:
		return nil
	}
	return &shards.FieldError{
		Field: "login", Found: s.Key + "=" + s.Value + ", which checks less than " + s.Key + "=" + ours + " of the source's DSN",
		Expected: "none, or one as strict; or another DSN of the source",
	}
}

func passwordOf(ctx context.Context, host shards.Host, c *pgx.ConnConfig) (string, error) {
	credentials, err := host.Credentials(ctx)
	if err != nil || credentials.Password == "" {
		return c.Password, err
	}
	return credentials.Password, nil
}
