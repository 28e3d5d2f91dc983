package connect

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Identity identifies the database of a session by its server's system identifier and its own OID, and reports whether the server is a
// standby. A physical copy of a database has the same identity; [Same] tells the two apart.
func Identity(ctx context.Context, conn *pgx.Conn) (database string, standby bool, err error) {
	const query = `
		SELECT s.system_identifier::text || '/' || d.oid::text, pg_is_in_recovery()
		FROM pg_database d, pg_control_system() s WHERE d.datname = current_database()`
	err = conn.QueryRow(ctx, query).Scan(&database, &standby)
	return database, standby, err
}

// Same reports whether the sessions to two hosts are to one server, and to one database of it: an advisory lock that one of them holds
// for a moment shows to the other. An error is a [shards.HostError].
func Same(ctx context.Context, hostA string, a *pgx.Conn, hostB string, b *pgx.Conn) (server, database bool, err error) {
	key := rand.Int64()
	tx, err := a.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, DeferrableMode: pgx.NotDeferrable})
	if err == nil {
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key)
	}
	if err != nil {
		return false, false, &shards.HostError{Host: hostA, Err: err}
	}
	const query = `
		SELECT count(*) > 0, coalesce(bool_or(l.database = (SELECT oid FROM pg_database WHERE datname = current_database())), false)
		FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32) | l.objid::bigint = $1`
	if err := b.QueryRow(ctx, query, key).Scan(&server, &database); err != nil {
		return false, false, &shards.HostError{Host: hostB, Err: err}
	}
	return server, database, nil
}
