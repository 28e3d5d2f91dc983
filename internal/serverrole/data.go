package serverrole

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// DataTimeline is an expression for the highest timeline that the data of a standby are known to be on. Only a role with the rights of
// pg_read_all_stats sees what the standby receives; others see the timeline of its last restartpoint.
const DataTimeline = `greatest(1, (select max(received_tli) from pg_catalog.pg_stat_wal_receiver where status = 'streaming'),
	(select timeline_id from pg_catalog.pg_control_checkpoint()), (select min_recovery_end_timeline from pg_catalog.pg_control_recovery()))::int8`

// ReadDataTimeline asks a standby for the timeline of its data. It returns 0 if the role may not see it.
func ReadDataTimeline(ctx context.Context, conn *pgconn.PgConn) (uint32, error) {
	const query = `select case when pg_catalog.pg_has_role('pg_read_all_stats', 'usage') then ` + DataTimeline + ` end`
	results, err := conn.Exec(ctx, query).ReadAll()
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "42501":
		return 0, nil
	case err != nil:
		return 0, err
	case len(results) != 1 || len(results[0].Rows) != 1:
		return 0, errNoAnswer
	}
	timeline, _ := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32) // empty if the role may not see it
	return uint32(timeline), nil
}
