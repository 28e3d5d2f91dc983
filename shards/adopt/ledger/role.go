package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// makeRole makes the role if the server does not have it, and refuses one that another role can become.
func makeRole(ctx context.Context, tx pgx.Tx) error {
	var there bool
	if err := tx.QueryRow(ctx, `select to_regrole('kiloshard_adopt') is not null`).Scan(&there); err != nil {
		return err
	}
	if !there {
		// From Postgres 16 on this setting can make the role that makes another one a member of it.
		const own = `select set_config('createrole_self_grant', '', true) where current_setting('server_version_num')::int >= 160000`
		if _, err := tx.Exec(ctx, own); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `create role kiloshard_adopt nologin noinherit`); err != nil {
			return fmt.Errorf("role %s: %w", Role, err)
		}
	}
	return CheckRole(ctx, tx)
}

// CheckRole returns a [shards.FieldError] if anybody but a superuser can act as the role: then a write as the role need not be that of a
// mirror. From Postgres 16 on the role that made it keeps the right to grant it.
func CheckRole(ctx context.Context, tx pgx.Tx) error {
	const query = `
		select concat_ws(', ', case when r.rolcanlogin then 'it can log in' end, case when r.rolsuper then 'it is a superuser' end,
			(select 'it is granted to ' || string_agg(distinct pg_get_userbyid(m.member), ', ') from pg_auth_members m where m.roleid = r.oid
				and coalesce((to_jsonb(m) ->> 'inherit_option')::boolean or (to_jsonb(m) ->> 'set_option')::boolean, true)))
		from pg_roles r where r.rolname = 'kiloshard_adopt'`
	var wrong string
	if err := tx.QueryRow(ctx, query).Scan(&wrong); err != nil {
		return fmt.Errorf("role %s: %w", Role, err)
	}
	if wrong != "" {
		return &shards.FieldError{Field: "role " + Role, Found: wrong, Expected: "a role that cannot log in and is granted to nobody"}
	}
	return nil
}

// Own calls fn in the caller's transaction while the session's role may make the role kiloshard_adopt the owner of an object in schema
// kiloshard_adopt: alter function … owner to kiloshard_adopt. Other sessions never see the membership, since it ends in the same
// transaction. To drop or replace such a function later, call Own again with fn running "set local role kiloshard_adopt", and then
// "reset role". A superuser needs no membership, and gets none.
func Own(ctx context.Context, tx pgx.Tx, fn func(pgx.Tx) error) error {
	var super bool
	var version int
	if err := tx.QueryRow(ctx, `select rolsuper, current_setting('server_version_num')::int from pg_roles where rolname = current_user`).Scan(&super, &version); err != nil {
		return err
	}
	if super {
		return fn(tx)
	}
	grant := `grant kiloshard_adopt to current_user`
	if version >= 160000 {
		grant += ` with inherit false, set true`
	}
	if _, err := tx.Exec(ctx, grant); err != nil {
		return fmt.Errorf("role %s: %w; expected a superuser, or a role with CREATEROLE; if another role made %[1]s, from Postgres 16 on: GRANT %[1]s TO … WITH ADMIN TRUE, INHERIT FALSE, SET FALSE", Role, err)
	}
	if err := fn(tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `revoke kiloshard_adopt from current_user`); err != nil {
		return err
	}
	return CheckRole(ctx, tx)
}

// dropRole drops the role if nothing depends on it, and leaves it if it cannot be dropped by this session's role.
func dropRole(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `savepoint role`); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `drop role if exists kiloshard_adopt`)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		switch pg.Code {
		case "2BP01", "42501", "XX000": // something depends on it, another role made it, another session drops it
			_, err = tx.Exec(ctx, `rollback to savepoint role`)
		}
	}
	return err
}
