package replicate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// subscribed reports whether the subscription is there, and whether it is enabled.
func (s Stream) subscribed(ctx context.Context) (there, enabled bool, err error) {
	const query = `
		SELECT count(*) > 0, coalesce(bool_or(subenabled), false) FROM pg_subscription
		WHERE subname = $1 AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())`
	err = s.To.QueryRow(ctx, query, s.Slot()).Scan(&there, &enabled)
	return there, enabled, err
}

// Unsubscribe drops the subscription if it is there. [Stream.Unpublish] drops its slot.
func (s Stream) Unsubscribe(ctx context.Context) error {
	there, _, err := s.subscribed(ctx)
	if err != nil || !there {
		return err
	}
	if err := DropSubscription(ctx, s.To, s.Slot()); err != nil {
		return fmt.Errorf("dropping the subscription on %s: %w", s.Target, err)
	}
	return nil
}

// beginner is a session, or a transaction, where Begin sets a savepoint.
type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Subscribe makes the subscription by a session to the target, or in a transaction there. It is not enabled yet,
// and begins where the slot does.
//
// Its connection string is in a catalog that only superusers can read. The server assembles the statement from a parameter, and logs neither.
func (s Stream) Subscribe(ctx context.Context, conn beginner) error {
	login, err := s.conninfo(ctx)
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if s.Login.WithPassword {
		const quiet = `SET LOCAL log_min_error_statement = panic; SET LOCAL log_min_duration_statement = -1; SET LOCAL log_statement = none; SET LOCAL log_error_verbosity = terse; SET LOCAL log_parameter_max_length = 0; SET LOCAL log_parameter_max_length_on_error = 0;
			SELECT set_config('pg_stat_statements.track', 'none', true) WHERE current_setting('pg_stat_statements.track', true) = 'all'`
		if _, err := tx.Exec(ctx, quiet); err != nil {
			return fmt.Errorf("a subscription with a password takes a role on %s that may keep it out of the server's log and pg_stat_statements: %w", s.Target, err)
		}
	}
	const make = `
DO $kiloshard$ BEGIN
  EXECUTE format('CREATE SUBSCRIPTION %I CONNECTION %L PUBLICATION %1$I WITH (slot_name = %1$L, create_slot = false, copy_data = false, enabled = false)',
    current_setting('kiloshard.subscription'), current_setting('kiloshard.conninfo'));
END $kiloshard$`
	if _, err := tx.Exec(ctx, `SELECT set_config('kiloshard.subscription', $1, true), set_config('kiloshard.conninfo', $2, true)`, s.Slot(), login); err != nil {
		return forgetStatement(err)
	}
	if _, err := tx.Exec(ctx, make); err != nil {
		err = fmt.Errorf("subscription on %s, which logs in to %s: %w", s.Target, s.Source, forgetStatement(err))
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "08006" && !s.Login.WithPassword {
			err = fmt.Errorf("%w; --login-with-password gives it the password of the source's DSN, --login another way to log in", err)
		}
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && strings.Contains(pg.Message, "certificate file") {
			err = fmt.Errorf("%w; the files that the source's DSN names are read on %s: --login names others there, as in sslrootcert=FILE", err, s.Target)
		}
		return err
	}
	return tx.Commit(ctx)
}

// forgetStatement removes the text of a statement with a password from an error.
func forgetStatement(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		clean := *pg
		clean.Where, clean.InternalQuery, clean.Detail = "", "", ""
		return &clean
	}
	return err
}

// Enable starts the subscription, and notes in the target's ledger that all rows are copied.
func (s Stream) Enable(ctx context.Context, to pgx.Tx) error {
	there, enabled, err := s.subscribed(ctx)
	if err == nil && (!there || enabled) {
		err = fmt.Errorf("somebody has enabled or dropped subscription %s on %s while rows were copied: expected move resume, which starts the copy again", s.Slot(), s.Target)
	}
	if err == nil {
		_, err = to.Exec(ctx, "ALTER SUBSCRIPTION "+session.Name(s.Slot())+" ENABLE")
	}
	if err == nil {
		_, err = to.Exec(ctx, `UPDATE kiloshard.moves SET copied = clock_timestamp() WHERE id = $1`, s.ID)
	}
	return err
}
