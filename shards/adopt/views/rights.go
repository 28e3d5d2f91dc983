package views

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
)

// rights returns the rights that roles need to use views and next_id(), beside those on views: the same for each shard.
func (k *maker) rights() []ledger.Right {
	var all []ledger.Right
	add := func(r ledger.Right) {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, o := range k.old {
		for _, g := range o.grants {
			add(ledger.Right{Object: "schema", Role: g.Role})
			if g.Privilege == "INSERT" && o.IDs == adopt.NextID {
				add(ledger.Right{Object: "sequence", Role: g.Role})
			}
		}
	}
	return all
}

// grantHelper lets the roles that make IDs use the helper schema.
func (k *maker) grantHelper(ctx context.Context, tx pgx.Tx) error {
	var wanted []ledger.Right
	for _, r := range k.rights() {
		if r.Object == "sequence" {
			wanted = append(wanted, ledger.Right{Object: "schema", Role: r.Role})
		}
	}
	return grantRights(ctx, tx, ledger.Helper, "kiloshard", wanted)
}

// grantRights grants rights that roles lack in the schema of a shard, or in the helper schema, and records them.
func grantRights(ctx context.Context, tx pgx.Tx, n shards.Number, schema string, wanted []ledger.Right) error {
	const query = `
		select 'schema', case g.grantee when 0 then '' else pg_get_userbyid(g.grantee)::text end
		from pg_namespace s cross join aclexplode(coalesce(s.nspacl, acldefault('n', s.nspowner))) g where s.nspname = $1 and g.privilege_type = 'USAGE'
		union all
		select 'sequence', case g.grantee when 0 then '' else pg_get_userbyid(g.grantee)::text end
		from pg_class c cross join aclexplode(coalesce(c.relacl, acldefault('s', c.relowner))) g
		where c.relnamespace = to_regnamespace(quote_ident($1)) and c.relname = 'next_id_seq' and g.privilege_type = 'USAGE'`
	rows, err := tx.Query(ctx, query, schema)
	if err != nil {
		return err
	}
	have, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ledger.Right])
	if err != nil {
		return err
	}
	var missing []ledger.Right
	for _, r := range wanted {
		if slices.Contains(have, r) {
			continue
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("grant usage on %s to %s", object(schema, r), to(r.Role))); err != nil {
			return err
		}
		missing = append(missing, r)
	}
	return ledger.AddRights(ctx, tx, n, missing)
}

// revokeRights takes back what grantRights has granted.
func revokeRights(ctx context.Context, tx pgx.Tx, n shards.Number, schema string) error {
	granted, err := ledger.TakeRights(ctx, tx, n)
	if err != nil {
		return err
	}
	for _, r := range granted {
		var gone bool // the role, and its rights with it
		if err := tx.QueryRow(ctx, `select $1 <> '' and not exists (select from pg_roles where rolname = $1)`, r.Role).Scan(&gone); err != nil {
			return err
		}
		if gone {
			continue
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("revoke usage on %s from %s", object(schema, r), to(r.Role))); err != nil {
			return err
		}
	}
	return nil
}

func object(schema string, r ledger.Right) string {
	if r.Object == "sequence" {
		return "sequence " + quote(schema, "next_id_seq")
	}
	return "schema " + quote(schema)
}

// to writes a role for GRANT and REVOKE; the empty one is PUBLIC.
func to(role string) string {
	if role == "" {
		return "public"
	}
	return quote(role)
}
