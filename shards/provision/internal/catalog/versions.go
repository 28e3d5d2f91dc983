package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// State compares an installed object with the present version of it.
type State int

// The states, from best to worst: the maximum of several states is that of the whole.
const (
	Current State = iota
	Old           // it is complete, in another version
	Missing       // it is missing or incomplete
)

// Versions are the versions of installed objects, by schema and object, such as "shard_00042.next_id".
type Versions map[string]string

// ReadVersions reads versions from the comments of objects.
func ReadVersions(ctx context.Context, conn *pgx.Conn, pattern string) (Versions, error) {
	const query = `
		SELECT n.nspname || '.' || o.name, d.description
		FROM pg_description d
		JOIN (
			SELECT 'pg_proc'::regclass, oid, pronamespace, proname FROM pg_proc
			UNION ALL SELECT 'pg_class'::regclass, oid, relnamespace, relname FROM pg_class
		) o (class, oid, namespace, name) ON o.class = d.classoid AND o.oid = d.objoid
		JOIN pg_namespace n ON n.oid = o.namespace
		WHERE d.objsubid = 0 AND d.description LIKE $2 || '%' AND (n.nspname ~ $1 OR n.nspname = $3)`
	rows, _ := conn.Query(ctx, query, pattern, sql.VersionMark, mapsql.Helper) // rows has the error
	v := Versions{}
	var object, comment string
	_, err := pgx.ForEachRow(rows, []any{&object, &comment}, func() error {
		v[object] = sql.Version(comment)
		return nil
	})
	return v, err
}

// State compares the version of an installed object.
func (v Versions) State(object, version string) State {
	if v[object] != version {
		return Old
	}
	return Current
}
