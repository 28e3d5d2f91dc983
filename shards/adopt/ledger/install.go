package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// schema makes the schema and the tables of the ledger.
const schema = `
create schema kiloshard_adopt;
grant usage, create on schema kiloshard_adopt to kiloshard_adopt;
create table kiloshard_adopt.adoption (
	one boolean primary key default true check (one),
	gate text not null check (gate in ('views', 'closed', 'tables', 'finished')),
	shards int not null,
	strategy text not null, -- the expression for the shard of a key
	file text not null, -- adopt.yaml
	structure text not null, -- of the old tables
	started_at timestamptz not null default clock_timestamp()
);
create table kiloshard_adopt.shards (
	shard int primary key,
	stage text not null default 'views' check (stage in ('views', 'copying', 'tables')),
	views text not null default '', -- a fingerprint of the statements that made its views
	changed_at timestamptz not null default clock_timestamp()
);
create table kiloshard_adopt.old_writes ( -- without an index: writers never wait for each other
	relation regclass not null,
	role name not null,
	application text not null,
	at timestamptz not null
);
create table kiloshard_adopt.granted (
	shard int not null, -- -1 for the helper schema
	object text not null check (object in ('schema', 'sequence')),
	role text not null, -- empty for PUBLIC
	primary key (shard, object, role)
);
create table kiloshard_adopt.history (
	at timestamptz not null default clock_timestamp(),
	gate text not null,
	what text not null,
	by name not null default session_user
);
grant select on kiloshard_adopt.adoption, kiloshard_adopt.shards to kiloshard_adopt;
`

// installAttempts bounds how often Install retries when another database of the server makes or drops the role at the same moment.
const installAttempts = 10

// Install makes schema and role, and writes the adoption and a row for each of its shards, all at [StageViews], in one transaction. If the
// schema is there it changes nothing, and returns false. The role of the session needs CREATE on the database, and CREATEROLE. From
// Postgres 16 on, a role that another one has made needs ADMIN OPTION besides.
func Install(ctx context.Context, conn *pgx.Conn, a Adoption) (installed bool, err error) {
	for attempt := 0; ; attempt++ {
		installed, err = install(ctx, conn, a)
		if err == nil || attempt == installAttempts || !isRace(err) {
			return installed, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// isRace reports whether another session made or dropped the schema or the role at the same moment.
func isRace(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "23505", "42710", "42P06", "42704", "XX000": // unique_violation, duplicate_object, duplicate_schema, undefined_object, concurrently updated
		return true
	}
	return false
}

func install(ctx context.Context, conn *pgx.Conn, a Adoption) (bool, error) {
	installed := false
	return installed, inTransaction(ctx, conn, func(tx pgx.Tx) error {
		there, err := isThere(ctx, tx)
		if err != nil || there {
			return err
		}
		if err := makeRole(ctx, tx); err != nil {
			return err
		}
		if err := Own(ctx, tx, func(pgx.Tx) error { return nil }); err != nil { // a later gate would fail
			return err
		}
		if _, err := tx.Exec(ctx, schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, recorder); err != nil {
			return err
		}
		const adoption = `insert into kiloshard_adopt.adoption (gate, shards, strategy, file, structure) values ('views', $1, $2, $3, $4)`
		if _, err := tx.Exec(ctx, adoption, a.Shards, a.Strategy, a.File, a.Structure); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into kiloshard_adopt.shards (shard) select generate_series(0, $1::int - 1)`, a.Shards); err != nil {
			return err
		}
		installed = true
		return Note(ctx, tx, "the ledger was made")
	})
}

// inTransaction calls fn in a transaction of its own.
func inTransaction(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	return connect.NameHolders(ctx, conn.PgConn(), pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, fn))
}

// isThere reports whether the ledger is there. Its maker must be one that the role of the session trusts: itself, a role that it is a
// member of, or a superuser. It reads catalogs only.
func isThere(ctx context.Context, tx pgx.Tx) (bool, error) {
	const query = `
		with recursive mine (role) as (
			select oid from pg_catalog.pg_roles where rolname = current_user
			union select m.roleid from pg_catalog.pg_auth_members m join mine on mine.role = m.member
			where coalesce((to_jsonb(m) ->> 'inherit_option')::boolean or (to_jsonb(m) ->> 'set_option')::boolean, true)
		), trusted as (
			select role from mine union select oid from pg_catalog.pg_roles where rolsuper
		), objects as (
			select 'schema ' || n.nspname as what, n.nspowner as owner from pg_catalog.pg_namespace n where n.nspname = 'kiloshard_adopt'
			union all
			select c.oid::regclass::text, c.relowner from pg_catalog.pg_class c where c.relnamespace = pg_catalog.to_regnamespace('kiloshard_adopt')
			union all
			select p.oid::regprocedure::text, p.proowner from pg_catalog.pg_proc p
			where p.pronamespace = pg_catalog.to_regnamespace('kiloshard_adopt') and p.proowner <> coalesce((select oid from pg_catalog.pg_roles where rolname = 'kiloshard_adopt'), 0)
		)
		select exists (select from objects), (select min(what || ' belongs to role ' || pg_catalog.pg_get_userbyid(owner))
			from objects where owner not in (select role from trusted))`
	var there bool
	var foreign *string
	if err := tx.QueryRow(ctx, query).Scan(&there, &foreign); err != nil {
		return false, err
	}
	if foreign != nil {
		return false, &shards.FieldError{Field: "the ledger", Found: *foreign, Expected: "one that belongs to the role of this command, or to one that it is a member of"}
	}
	return there, nil
}

// Remove drops the schema, with what commands have recorded, and the role unless something of this or another database depends on it. It
// drops nothing that is outside the schema: triggers that use its functions have to be dropped before.
func Remove(ctx context.Context, conn *pgx.Conn) error {
	return inTransaction(ctx, conn, func(tx pgx.Tx) error {
		there, err := isThere(ctx, tx)
		if err != nil {
			return err
		}
		if there {
			const query = `drop table if exists kiloshard_adopt.adoption, kiloshard_adopt.shards, kiloshard_adopt.old_writes, kiloshard_adopt.granted, kiloshard_adopt.history;
				drop function if exists kiloshard_adopt.record_old_write();
				drop schema kiloshard_adopt`
			if _, err := tx.Exec(ctx, query, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("schema %s: %w", Schema, err)
			}
		}
		return dropRole(ctx, tx)
	})
}
