package views

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// recorderName is the name of the statement trigger on old tables that records writes without a shard's path.
const recorderName = "kiloshard_adopt_record"

// The limits of a lock on an old table: writers that come later wait behind it, so it waits briefly, and often.
const (
	lockTimeout  = "1s"
	lockPause    = time.Second
	lockAttempts = 60
)

// relation is a table or a partition.
type relation struct {
	name string // in quotes, with its schema
	oid  uint32
}

// recorded returns the tables and partitions that have the trigger.
func recorded(ctx context.Context, conn *pgx.Conn) ([]relation, error) {
	const query = `select format('%I.%I', n.nspname, c.relname), c.oid from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
		where t.tgfoid = to_regprocedure('kiloshard_adopt.record_old_write()') and not t.tgisinternal order by 1`
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r relation, err error) { return r, row.Scan(&r.name, &r.oid) })
}

// toRecord returns sharded tables with their partitions: a statement on a partition fires no trigger of its table.
func (k *maker) toRecord(ctx context.Context, conn *pgx.Conn) ([]relation, error) {
	var names []string
	for _, o := range k.old {
		names = append(names, o.Table.SQL())
	}
	const query = `
		select format('%I.%I', n.nspname, c.relname), c.oid from unnest($1::text[]) u (name)
		cross join lateral (select u.name::regclass union select p.relid from pg_partition_tree(u.name::regclass) p) l (relid)
		join pg_class c on c.oid = l.relid join pg_namespace n on n.oid = c.relnamespace order by 1`
	rows, err := conn.Query(ctx, query, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r relation, err error) { return r, row.Scan(&r.name, &r.oid) })
}

// record puts the trigger on the sharded tables that lack it, and takes it from others.
func (k *maker) record(ctx context.Context, conn *pgx.Conn) error {
	have, err := recorded(ctx, conn)
	if err != nil {
		return err
	}
	want, err := k.toRecord(ctx, conn)
	if err != nil {
		return err
	}
	has, wants := map[uint32]bool{}, map[uint32]bool{}
	for _, r := range have {
		has[r.oid] = true
	}
	for _, r := range want {
		if wants[r.oid] = true; has[r.oid] {
			continue
		}
		// ALWAYS: it records the writes of sessions that act as replicas, too.
		statements := fmt.Sprintf(`create trigger %s before insert or update or delete or truncate on %s for each statement when %s execute function kiloshard_adopt.record_old_write();
			alter table only %[2]s enable always trigger %[1]s`, recorderName, r.name, ledger.OldWay(k.m))
		if err := locking(ctx, conn, statements); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	for _, r := range have {
		if !wants[r.oid] {
			if err := unrecord(ctx, conn, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// unrecord takes the trigger from a table.
func unrecord(ctx context.Context, conn *pgx.Conn, r relation) error {
	if err := locking(ctx, conn, fmt.Sprintf("drop trigger if exists %s on %s", recorderName, r.name)); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}

// locking runs statements that lock an old table, in one transaction, again and again while others have the lock.
func locking(ctx context.Context, conn *pgx.Conn, statements string) error {
	for attempt := 1; ; attempt++ {
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "set local lock_timeout = '"+lockTimeout+"';\n"+statements, pgx.QueryExecModeSimpleProtocol)
			return connect.NameHolders(ctx, conn.PgConn(), err)
		})
		if err == nil || !connect.IsLockTimeout(err) || attempt == lockAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}
