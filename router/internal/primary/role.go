package primary

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

// role is the role of a server, as the server reports it.
type role struct {
	recovery bool // it is a standby, or not yet a primary
	readOnly bool // default_transaction_read_only, or a standby
	timeline uint32
	system   string // the identifier of its cluster
	server   string // its start time in microseconds, which identifies it within its cluster
}

// takesWrites reports whether the server is a primary that accepts writes.
func (r role) takesWrites() bool { return !r.recovery && !r.readOnly }

var errNoAnswer = errors.New("the server did not return its role")

// askRole asks a server for its role. A primary's timeline is that of the WAL it writes: the timeline in
// pg_control_checkpoint is out of date until the first checkpoint after a promotion. Any user may call these functions
// unless the rights were revoked.
func askRole(ctx context.Context, conn *pgconn.PgConn) (r role, err error) {
	const plain = `select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'`
	const full = plain + `, case when not pg_catalog.pg_is_in_recovery() then
	pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) end,
(pg_catalog.pg_control_system()).system_identifier, (extract(epoch from pg_catalog.pg_postmaster_start_time()) * 1000000)::int8`
	results, err := conn.Exec(ctx, full).ReadAll()
	if code := failure.SQLState(err); code == "42501" || code == "55000" { // a server that has just been promoted returns 55000
		results, err = conn.Exec(ctx, plain).ReadAll()
	}
	if err != nil {
		return r, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return r, errNoAnswer
	}
	row := results[0].Rows[0]
	r.recovery, r.readOnly = string(row[0]) == "t", string(row[1]) == "t"
	if len(row) > 2 {
		timeline, _ := strconv.ParseUint(string(row[2]), 16, 32) // empty for a standby
		r.timeline, r.system, r.server = uint32(timeline), string(row[3]), string(row[4])
	}
	return r, nil
}
