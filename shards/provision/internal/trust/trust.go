package trust

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// grant is the kind of a finding that is still harmless: a role could add an object.
const grant = "grant"

// Finding is an object that another role owns, or added to one of Kiloshard's.
type Finding struct{ Kind, Schema, What, Expected string }

// Findings are the findings on one host.
type Findings []Finding

// Read looks for objects of other roles. It reads only catalogs, so call it before any other use of a host's objects.
func Read(ctx context.Context, conn *pgx.Conn, ours sql.Ours) (Findings, error) {
	query := sql.Foreign(ours) + " ORDER BY kind <> 'owner', what NOT LIKE 'schema %', schema, what"
	rows, _ := conn.Query(ctx, query, pgx.QueryExecModeSimpleProtocol) // rows has the error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
}

// HelperUsable reports whether the objects in the helper schema may be read.
func (f Findings) HelperUsable() bool {
	for _, finding := range f.Objects() {
		if finding.Schema == mapsql.Helper {
			return false
		}
	}
	return true
}

// Objects returns the findings that make a host unusable: all but grants.
func (f Findings) Objects() Findings {
	var objects Findings
	for _, finding := range f {
		if finding.Kind != grant {
			objects = append(objects, finding)
		}
	}
	return objects
}

// Compare adds each finding as a difference.
func (f Findings) Compare(l *difference.List) {
	for _, finding := range f {
		l.Add(difference.Foreign, finding.Schema, finding.What, finding.Expected)
	}
}
