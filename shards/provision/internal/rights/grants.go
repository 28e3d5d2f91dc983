package rights

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// OfMost returns a grant for each role that has rights in more than half of the given number of shards. The role may
// write if it may write in more than half of the shards in which it has rights.
func (all Rights) OfMost(shards int) []sql.Grant {
	type count struct{ all, writes int }
	counts := map[string]count{}
	for _, r := range all {
		c := counts[r.Role]
		if c.all++; r.Writes {
			c.writes++
		}
		counts[r.Role] = c
	}
	var grants []sql.Grant
	for role, c := range counts {
		if 2*c.all > shards {
			grants = append(grants, sql.Grant{Role: role, ReadOnly: 2*c.writes <= c.all})
		}
	}
	slices.SortFunc(grants, func(a, b sql.Grant) int { return cmp.Compare(a.Role, b.Role) })
	return grants
}

// Has reports whether a role has the rights of a grant in a schema. Nobody writes in the helper schema.
func (all Rights) Has(g sql.Grant, schema string) bool {
	return slices.ContainsFunc(all, func(r Right) bool {
		return r.Schema == schema && r.Role == g.Role && (r.Writes || g.ReadOnly || schema == mapsql.Helper)
	})
}

// HelperScript returns a script for grants in the helper schema: those that are missing, or all of them if its objects
// change.
func (all Rights) HelperScript(grants []sql.Grant, changes bool) string {
	var b strings.Builder
	for _, g := range grants {
		if changes || !all.Has(g, mapsql.Helper) {
			b.WriteString(g.Helper())
		}
	}
	return b.String()
}

// Compare adds the grants that roles do not have in a schema.
func (all Rights) Compare(l *difference.List, grants []sql.Grant, schema string) {
	for _, g := range grants {
		if !all.Has(g, schema) {
			command := "kiloshard grant " + g.Role
			if g.ReadOnly {
				command += " --read-only"
			}
			l.Add(difference.Rights, schema, "role "+g.Role+" has fewer rights here, or none",
				"its rights on most shards; "+command+" grants them")
		}
	}
}

// CompareOwners adds the roles that have rights on shards and can act as their owner: superusers, and members of the
// owner.
func (all Rights) CompareOwners(l *difference.List) {
	for _, r := range all {
		if r.Schema == mapsql.Helper && r.Owner != "" {
			l.Add(difference.Foreign, mapsql.Helper,
				"role "+r.Role+", which has rights on shards, can act as their owner "+r.Owner+", and so repeat IDs",
				"a role that is no superuser and no member of "+r.Owner)
		}
	}
}
