package views

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
)

// Host returns the one host of a map that has all shards, or a [shards.FieldError] if several have them.
func Host(m *shards.Map) (shards.Host, error) {
	first := m.Host(0)
	for n := range m.All().All() {
		if host := m.Host(n); host.Name != first.Name {
			return first, &shards.FieldError{Field: "placement", Found: fmt.Sprintf("shards on %s and %s", first.Name, host.Name), Expected: "all shards on one host, the database that is adopted"}
		}
	}
	return first, nil
}

// checkStrategy returns a [shards.FieldError] unless the map takes a key to the shard that the plan's expression takes it to.
func checkStrategy(m *shards.Map, s adopt.Strategy) error {
	got := m.Strategy()
	of := got.Of
	if of == 0 {
		of = m.Len()
	}
	same := got.By == s.By && of == m.Len() && (s.By == shards.Modulo || got.Hash == shards.Hex && got.Digits == 8)
	if same {
		return nil
	}
	expected := fmt.Sprintf("the strategy of adopt.yaml, {by: %s}, of %d shards", s.By, m.Len())
	if s.Hash != "" {
		expected = fmt.Sprintf("the strategy of adopt.yaml, {by: %s, hash: %s}, of %d shards", s.By, s.Hash, m.Len())
	}
	return &shards.FieldError{Field: "strategy", Found: got.String(), Expected: expected}
}

// checkShards returns an error unless all shards are there and make IDs.
func checkShards(ctx context.Context, tx pgx.Tx, m *shards.Map) error {
	const query = `select s from unnest($1::text[]) with ordinality u (s, n) where to_regprocedure(s || '.next_id()') is null order by n`
	rows, err := tx.Query(ctx, query, m.Schemas(slices.Collect(m.All().All())))
	if err != nil {
		return err
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(missing) == 0 {
		return err
	}
	return &shards.FieldError{Field: "shards", Found: fmt.Sprintf("%d of %d are missing, such as %s", len(missing), m.Len(), missing[0]), Expected: "all of them: run kiloshard create first"}
}

// checkOwners returns an error for old tables whose owner the session's role cannot act for: only an owner can take a trigger away.
func checkOwners(ctx context.Context, tx pgx.Tx, old []*oldTable) error {
	var found []string
	for _, o := range old {
		var can bool
		if err := tx.QueryRow(ctx, `select pg_has_role($1::text::name, 'USAGE')`, o.owner).Scan(&can); err != nil {
			return err
		}
		if !can {
			found = append(found, fmt.Sprintf("%s of role %s", o.Table, o.owner))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &shards.FieldError{Field: "tables", Found: strings.Join(found, ", "), Expected: "tables of the role of this command, or of one that it is a member of and inherits from"}
}

// checkSubscriptions returns an error for old tables that a subscription writes to: its workers fire no statement trigger, so nothing would
// record their writes.
func checkSubscriptions(ctx context.Context, tx pgx.Tx, old []*oldTable) error {
	for _, o := range old {
		var is bool
		const query = `select exists (select from pg_subscription_rel r where r.srrelid in (select $1::text::regclass union select relid from pg_partition_tree($1::text::regclass)))`
		if err := tx.QueryRow(ctx, query, o.Table.SQL()).Scan(&is); err != nil {
			return err
		}
		if is {
			return &shards.FieldError{Field: "tables", Found: o.Table.String() + ", which a subscription writes to", Expected: "tables without one"}
		}
	}
	return nil
}
