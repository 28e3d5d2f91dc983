// Package serverrole reads whether a server is a primary, and which of several primaries was promoted last: by that rule the router, the
// commands and the map store choose one of a host's addresses.
package serverrole

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// Role is the role of a server, as the server reports it.
type Role struct {
	Recovery bool   // it is a standby, or not yet a primary
	ReadOnly bool   // default_transaction_read_only, or a standby
	Timeline uint32 // of the WAL that a primary writes; 0 if unknown
	System   string // the identifier of its cluster
	Server   string // its start time in microseconds, which identifies it within its cluster
}

// TakesWrites reports whether the server is a primary that accepts writes.
func (r Role) TakesWrites() bool { return !r.Recovery && !r.ReadOnly }

// Newer reports whether r is the better primary of a host: it is a primary and other is not, it was promoted later, or else it alone takes writes.
func (r Role) Newer(other Role) bool {
	switch {
	case r.Recovery != other.Recovery:
		return other.Recovery
	case r.Timeline != other.Timeline:
		return r.Timeline > other.Timeline
	}
	return !r.ReadOnly && other.ReadOnly
}

// IsSameServer reports whether two roles are those of one server, which may have several addresses. It reports false if the server is unknown.
func (r Role) IsSameServer(other Role) bool {
	return r.Server != "" && r.Server == other.Server && r.System == other.System
}

// Rivals reports whether a server takes writes although another one is the host's primary: then the host has two.
func (r Role) Rivals(primary Role) bool { return r.TakesWrites() && !r.IsSameServer(primary) }

var errNoAnswer = errors.New("the server did not return its role")

// Read asks a server for its role. A primary's timeline is that of the WAL it writes: the timeline in
// pg_control_checkpoint is out of date until the first checkpoint after a promotion. Any user may call these functions
// unless the rights were revoked; then only Recovery and ReadOnly are set.
func Read(ctx context.Context, conn *pgconn.PgConn) (r Role, err error) {
	const plain = `select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'`
	const full = plain + `, case when not pg_catalog.pg_is_in_recovery() then
	pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) end,
(pg_catalog.pg_control_system()).system_identifier, (extract(epoch from pg_catalog.pg_postmaster_start_time()) * 1000000)::int8`
	results, err := conn.Exec(ctx, full).ReadAll()
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42501" || pg.Code == "55000") { // a server that has just been promoted returns 55000
		results, err = conn.Exec(ctx, plain).ReadAll()
	}
	if err != nil {
		return r, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return r, errNoAnswer
	}
	row := results[0].Rows[0]
	r.Recovery, r.ReadOnly = string(row[0]) == "t", string(row[1]) == "t"
	if len(row) > 2 {
		timeline, _ := strconv.ParseUint(string(row[2]), 16, 32) // empty for a standby
		r.Timeline, r.System, r.Server = uint32(timeline), string(row[3]), string(row[4])
	}
	return r, nil
}
