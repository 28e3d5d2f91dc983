package checks

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// extension is an extension of a host.
type extension struct{ Name, Version, Schema string }

func extensions(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]extension, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[extension])
}

// holds finds the extensions in the shard's schema: they belong to the database, and would stay behind.
func (s *Shard) holds(ctx context.Context, conn *pgx.Conn) (bool, error) {
	const query = `
		SELECT format('extension %s is in the shard''s schema: expected it in one that is no shard''s; run %s', extname, CASE WHEN extrelocatable
			THEN format('ALTER EXTENSION %I SET SCHEMA public', extname)
			ELSE format('DROP EXTENSION %I and CREATE EXTENSION %1$I SCHEMA public, since Postgres does not move it', extname) END) || format(', and put "extensions: [%s]" into the config', extname)
		FROM pg_extension WHERE extnamespace = to_regnamespace($1) ORDER BY 1`
	found, err := session.Texts(ctx, conn, query, s.Schema)
	for _, what := range found {
		s.problem("%s", what)
	}
	return len(found) > 0, err
}

// compareExtensions finds the extensions of the shard that are missing on a target, or differ there. The move makes
// those of the map there, with the shard.
func (s *Shard) compareExtensions(ctx context.Context, conn *pgx.Conn, f *Found, made []shards.Extension) error {
	here, err := extensions(ctx, conn, `SELECT extname::text, extversion, extnamespace::regnamespace::text FROM pg_extension`)
	if err != nil {
		return err
	}
	for _, want := range s.extensions {
		if want.Schema == s.Schema { // reported already
			continue
		}
		i := slices.IndexFunc(here, func(e extension) bool { return e.Name == want.Name })
		k := slices.IndexFunc(made, func(e shards.Extension) bool { return e.Name == want.Name })
		switch {
		case i < 0 && k < 0:
			f.problem("extension %s is missing: expected \"extensions: [%[1]s]\" in the config, and kiloshard create, which makes it on each host", want.Name)
		case i < 0:
			version := made[k].Version
			const newest = `SELECT coalesce(nullif($2, ''), (SELECT default_version FROM pg_available_extensions WHERE name = $1), '')`
			if err := conn.QueryRow(ctx, newest, want.Name, version).Scan(&version); err != nil {
				return err
			}
			switch version {
			case want.Version:
			case "":
				f.problem("extension %s is missing, and the server has no files of it: expected the operating system's package with it", want.Name)
			default:
				f.problem("extension %s is missing, and would be made in version %s: expected %s, as on the source; update it there, or write the version into the config", want.Name, version, want.Version)
			}
		case here[i].Version != want.Version:
			f.problem("extension %s %s, on the source %[1]s %[3]s: expected the same version", want.Name, here[i].Version, want.Version)
		case here[i].Schema != want.Schema:
			f.problem("extension %s in schema %s, on the source in %s: expected the same schema", want.Name, here[i].Schema, want.Schema)
		}
	}
	return nil
}
