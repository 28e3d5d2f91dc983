package replicate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// DropSlot drops a slot if it is there, and ends the session that uses it. host is the host's name.
func DropSlot(ctx context.Context, conn *pgx.Conn, host, slot string) error {
	const drop = `
		SELECT CASE WHEN active THEN pg_terminate_backend(active_pid)::text ELSE pg_drop_replication_slot(slot_name)::text END
		FROM pg_replication_slots WHERE slot_name = $1 AND database = current_database()`
	return wait.Until(ctx, session.CleanUpLimit, wait.Slowly, fmt.Errorf("slot %s on %s is still in use", slot, host), func() (bool, error) {
		tag, err := conn.Exec(ctx, drop, slot)
		if session.Code(err) == "55006" { // the slot is active again
			return false, nil
		}
		return err == nil && tag.RowsAffected() == 0, err
	})
}

// DropSubscription drops a subscription, and not its slot.
func DropSubscription(ctx context.Context, conn *pgx.Conn, subscription string) error {
	n := session.Name(subscription)
	for _, statement := range []string{"ALTER SUBSCRIPTION " + n + " DISABLE", "ALTER SUBSCRIPTION " + n + " SET (slot_name = NONE)", "DROP SUBSCRIPTION " + n} {
		if err := session.Run(ctx, conn, statement); err != nil {
			return err
		}
	}
	return nil
}
