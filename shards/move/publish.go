package move

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// publish makes the publication of the shard's tables, one by one since FOR TABLES IN SCHEMA takes a superuser, and of this
// move's markers.
func (j *job) publish(ctx context.Context) error {
	if err := j.unpublish(ctx); err != nil {
		return err
	}
	if err := j.identify(ctx); err != nil {
		return err
	}
	tables, err := tablesOf(ctx, j.from, j.Schema)
	if err != nil {
		return err
	}
	tables = append(tables, fmt.Sprintf("kiloshard.move_markers WHERE (move = '%s')", j.ID))
	statement := fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s", session.Name(j.made()), strings.Join(tables, ", "))
	if err := session.Run(ctx, j.from, statement); err != nil {
		return fmt.Errorf("publication on %s: %w", j.Source, err)
	}
	j.event("published")
	return nil
}

// tablesOf returns the names of a schema's tables that are replicated, as SQL: partitions and children each by themselves, since a partitioned table
// has no rows.
func tablesOf(ctx context.Context, conn *pgx.Conn, schema string) ([]string, error) {
	const query = `SELECT format('ONLY %I.%I', $1::text, relname) FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relpersistence = 'p' ORDER BY relname`
	return session.Texts(ctx, conn, query, schema)
}

// unpublish drops the slot and the publication, as far as they are there.
func (j *job) unpublish(ctx context.Context) error {
	if err := j.dropSlot(ctx); err != nil {
		return err
	}
	return session.Run(ctx, j.from, "DROP PUBLICATION IF EXISTS "+session.Name(j.made()))
}

// dropSlot drops the slot if it is there.
func (j *job) dropSlot(ctx context.Context) error {
	const drop = `
		SELECT CASE WHEN active THEN pg_terminate_backend(active_pid)::text ELSE pg_drop_replication_slot(slot_name)::text END
		FROM pg_replication_slots WHERE slot_name = $1 AND database = current_database()`
	return wait.Until(ctx, session.CleanUpLimit, wait.Slowly, fmt.Errorf("slot %s on %s is still in use", j.made(), j.Source), func() (bool, error) {
		tag, err := j.from.Exec(ctx, drop, j.made())
		if session.Code(err) == "55006" { // it has become active
			return false, nil
		}
		return err == nil && tag.RowsAffected() == 0, err
	})
}

// subscribed tells whether the subscription is there, and whether it is enabled.
func (j *job) subscribed(ctx context.Context) (there, enabled bool, err error) {
	const query = `
		SELECT count(*) > 0, coalesce(bool_or(subenabled), false) FROM pg_subscription
		WHERE subname = $1 AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())`
	err = j.to.QueryRow(ctx, query, j.made()).Scan(&there, &enabled)
	return there, enabled, err
}

// unsubscribe drops the subscription if it is there, and not the slot, which [job.unpublish] drops.
func (j *job) unsubscribe(ctx context.Context) error {
	there, _, err := j.subscribed(ctx)
	if err != nil || !there {
		return err
	}
	if err := dropSubscription(ctx, j.to, j.made()); err != nil {
		return fmt.Errorf("dropping the subscription on %s: %w", j.Target, err)
	}
	return nil
}

// dropSubscription drops a subscription, and not its slot.
func dropSubscription(ctx context.Context, conn *pgx.Conn, subscription string) error {
	n := session.Name(subscription)
	for _, statement := range []string{"ALTER SUBSCRIPTION " + n + " DISABLE", "ALTER SUBSCRIPTION " + n + " SET (slot_name = NONE)", "DROP SUBSCRIPTION " + n} {
		if err := session.Run(ctx, conn, statement); err != nil {
			return err
		}
	}
	return nil
}

// forgetStatement takes the text of a statement with a password out of an error.
func forgetStatement(err error) error {
	if pg, ok := err.(*pgconn.PgError); ok { //nolint:errorlint // as pgconn returns it
		clean := *pg
		clean.Where, clean.InternalQuery, clean.Detail = "", "", ""
		return &clean
	}
	return err
}
