package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// grant is the kind of a finding that is harmless so far.
const grant = "grant"

// found is one object that another role owns or added to one of ours.
type found struct{ Kind, Schema, What, Expected string }

// UntrustedError reports an object on a host that Kiloshard would use with its own role's rights although another role owns
// it, or that has a trigger, a rule, a policy or a default that is not ours.
type UntrustedError struct {
	Found    string // such as "schema kiloshard belongs to role mallory"
	Expected string
	More     int // how many others there are
}

// Error says what was found and what was expected.
func (e *UntrustedError) Error() string {
	text := e.Found + "; expected " + e.Expected
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more: see kiloshard verify", e.More)
	}
	return text
}

// ours are the names of what shards hold of Kiloshard's, in schemas whose names match a pattern.
func ours(m *shards.Map, pattern string) sql.Ours {
	o := sql.Ours{Pattern: pattern, Relations: []string{"next_id_seq", "schema_version"}, Functions: []string{"next_id", "next_ids"}}
	o.Relations = append(o.Relations, slices.Sorted(maps.Keys(keyTablesOf(m).columns))...)
	for _, g := range m.Generators() {
		if g.Kind == shards.Row {
			o.Relations = append(o.Relations, "counters")
		}
		for _, w := range named(g, helper, 0) {
			o.Relations, o.Functions = append(o.Relations, w.Sequence()), append(o.Functions, w.Function(), w.Single())
		}
	}
	return o
}

// takeForeign reads only catalogs, before anything in a schema is used.
func (inv *inventory) takeForeign(ctx context.Context, conn *pgx.Conn, m *shards.Map, pattern string) error {
	rows, err := conn.Query(ctx, sql.Foreign(ours(m, pattern))+" ORDER BY kind <> 'owner', what NOT LIKE 'schema %', schema, what", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	inv.foreign, err = pgx.CollectRows(rows, pgx.RowToStructByPos[found])
	return err
}

// usable reports whether the objects in the helper schema may be read.
func (inv *inventory) usable() bool {
	for _, f := range inv.foreign {
		if f.Kind != grant && f.Schema == helper {
			return false
		}
	}
	return true
}

// untrusted returns a [shards.HostError] around an [UntrustedError] for each host with objects of other roles.
func untrusted(inventories []*inventory) error {
	var errs []error
	for _, inv := range inventories {
		var e *UntrustedError
		for _, f := range inv.foreign {
			switch {
			case f.Kind == grant:
			case e == nil:
				e = &UntrustedError{Found: f.What, Expected: f.Expected}
			default:
				e.More++
			}
		}
		if e != nil {
			errs = append(errs, &shards.HostError{Host: inv.host.Name, Err: e})
		}
	}
	return errors.Join(errs...)
}
