package move

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
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
		return err
	}
	return tx.Commit(ctx)
}

// keywords are the settings of a DSN that mean the same to the target as to us: others name files of this machine, or are
// for pools.
var keywords = regexp.MustCompile(`(?:^|[\s?&])(sslmode|connect_timeout|target_session_attrs)=([A-Za-z0-9-]+)`)

var (
	quotedValues = regexp.MustCompile(`'(?:[^'\\]|\\.)*'`)
	passwordName = regexp.MustCompile(`(?:^|\s)(?:ssl)?password\s*=`)
)

// hasPassword reports whether keywords and values of libpq hold a password, as a URL may, which is neither.
func hasPassword(login string) bool {
	return strings.Contains(login, "://") || passwordName.MatchString(quotedValues.ReplaceAllString(login, "''"))
}

// conninfo returns how the target logs in to the source: the addresses, the database and the user of the source's DSN, and
// [Config.Login]; with a password only as [Config.LoginWithPassword] says.
func (j *job) conninfo(ctx context.Context) (string, error) {
	c := j.from.Config()
	addresses, ports := []string{c.Host}, []string{fmt.Sprint(c.Port)}
	for _, f := range c.Fallbacks {
		if last := len(addresses) - 1; f.Host != addresses[last] || fmt.Sprint(f.Port) != ports[last] {
			addresses, ports = append(addresses, f.Host), append(ports, fmt.Sprint(f.Port))
		}
	}
	values := [][2]string{
		{"host", strings.Join(addresses, ",")},
		{"port", strings.Join(ports, ",")},
		{"dbname", c.Database},
		{"user", c.User},
		{"application_name", j.made()},
	}
	dsn := j.src.ConnString()
	if u, err := url.Parse(dsn); err == nil && u.Host != "" {
		dsn = u.RawQuery
	}
	for _, found := range keywords.FindAllStringSubmatch(dsn, -1) {
		values = append(values, [2]string{found[1], found[2]})
	}
	if j.cfg.LoginWithPassword {
		password, err := passwordOf(ctx, j.src, c)
		if err != nil {
			return "", err
		}
		values = append(values, [2]string{"password", password})
	}
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var parts []string
	for _, v := range values {
		parts = append(parts, v[0]+"='"+quote.Replace(v[1])+"'")
	}
	return strings.TrimSpace(strings.Join(parts, " ") + " " + j.cfg.Login), nil
}

func passwordOf(ctx context.Context, host shards.Host, c *pgx.ConnConfig) (string, error) {
	credentials, err := host.Credentials(ctx)
	if err != nil || credentials.Password == "" {
		return c.Password, err
	}
	return credentials.Password, nil
}
