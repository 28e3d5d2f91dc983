package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// beginner is a session, or a transaction, in which it begins a savepoint.
type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// makeSubscription makes the subscription by a session to the target, or in a transaction there. It is not enabled yet,
// and begins where the slot does.
//
// Its connection string is in a catalog that only superusers can read. The statement with it is put together on the server
// from a parameter, and the server logs neither.
func (j *job) makeSubscription(ctx context.Context, conn beginner) error {
	login, err := j.conninfo(ctx)
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if j.cfg.LoginWithPassword {
		const quiet = `SET LOCAL log_min_error_statement = panic; SET LOCAL log_min_duration_statement = -1; SET LOCAL log_statement = none; SET LOCAL log_error_verbosity = terse; SET LOCAL log_parameter_max_length = 0; SET LOCAL log_parameter_max_length_on_error = 0`
		if _, err := tx.Exec(ctx, quiet); err != nil {
			return fmt.Errorf("a subscription with a password takes a role on %s that may keep it out of the server's log: %w", j.Target, err)
		}
	}
	const make = `
DO $kiloshard$ BEGIN
  EXECUTE format('CREATE SUBSCRIPTION %I CONNECTION %L PUBLICATION %1$I WITH (slot_name = %1$L, create_slot = false, copy_data = false, enabled = false)',
    current_setting('kiloshard.subscription'), current_setting('kiloshard.conninfo'));
END $kiloshard$`
	if _, err := tx.Exec(ctx, `SELECT set_config('kiloshard.subscription', $1, true), set_config('kiloshard.conninfo', $2, true)`, j.made(), login); err != nil {
		return forgetStatement(err)
	}
	if _, err := tx.Exec(ctx, make); err != nil {
		err = fmt.Errorf("subscription on %s, which logs in to %s: %w", j.Target, j.Source, forgetStatement(err))
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "08006" && !j.cfg.LoginWithPassword {
			err = fmt.Errorf("%w; --login-with-password gives it the password of the source's DSN, --login another way to log in", err)
		}
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && strings.Contains(pg.Message, "certificate file") {
			err = fmt.Errorf("%w; the files that the source's DSN names are read on %s: --login names others there, as in sslrootcert=FILE", err, j.Target)
		}
		return err
	}
	return tx.Commit(ctx)
}

// hasPassword reports whether a text holds a password, as a URL may, which is neither keywords nor values of libpq.
func hasPassword(login string) bool {
	d, err := dsn.Parse(login)
	return err != nil || d.IsURL() || slices.ContainsFunc(d.All(), func(s dsn.Setting) bool { return s.Key == "password" || s.Key == "sslpassword" })
}

// conninfo returns how the target logs in to the source: the addresses, the database and the user of the source's DSN, with TLS and
// checks as strict as ours, and [Config.Login]; with a password only as [Config.LoginWithPassword] says.
func (j *job) conninfo(ctx context.Context) (string, error) {
	c := j.from.Config()
	addresses, ports := []string{c.Host}, []string{fmt.Sprint(c.Port)}
	for _, f := range c.Fallbacks {
		if last := len(addresses) - 1; f.Host != addresses[last] || fmt.Sprint(f.Port) != ports[last] {
			addresses, ports = append(addresses, f.Host), append(ports, fmt.Sprint(f.Port))
		}
	}
	var release int
	if _, err := fmt.Sscan(j.to.PgConn().ParameterStatus("server_version"), &release); err != nil {
		return "", fmt.Errorf("release of Postgres on %s: %w", j.Target, err)
	}
	secure, err := connect.Secure(j.src, release)
	if err != nil {
		return "", err
	}
	d := dsn.New("host", strings.Join(addresses, ","), "port", strings.Join(ports, ","), "dbname", c.Database, "user", c.User, "application_name", j.made())
	settings, err := dsn.Parse(secure)
	if err != nil {
		return "", err
	}
	for _, s := range settings.All() {
		d.Set(s.Key, s.Value)
	}
	if j.cfg.LoginWithPassword {
		password, err := passwordOf(ctx, j.src, c)
		if err != nil {
			return "", err
		}
		d.Set("password", password)
	}
	login, err := dsn.Parse(j.cfg.Login)
	if err != nil {
		return "", err
	}
	for _, s := range login.All() {
		if err := notWeaker(s, d.Get(s.Key)); err != nil {
			return "", err
		}
		d.Set(s.Key, s.Value)
	}
	return d.String(), nil
}

// notWeaker returns an error for a setting of [Config.Login] that checks less than the source's DSN does.
func notWeaker(s dsn.Setting, ours string) error {
	switch {
	case s.Value == ours:
		return nil
	case s.Key == "sslmode" && slices.Index(dsn.Modes, s.Value) < slices.Index(dsn.Modes, ours):
	case s.Key == "channel_binding" && ours == "require":
	case s.Key == "require_auth" && ours != "" && ours != "!password":
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
