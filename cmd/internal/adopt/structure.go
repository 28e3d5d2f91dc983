package adopt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// adopted is the name of the first migration, and its title.
const adopted = "001_adopted.sql"

// ofAdoption matches the statements of a structure that make triggers of the adoption.
var ofAdoption = regexp.MustCompile(`(?m)^(CREATE TRIGGER|ALTER TABLE .+ (ENABLE ALWAYS|DISABLE) TRIGGER) kiloshard_adopt_.*\n`)

// recordStructure writes the structure of shards that have tables as the first migration, if there is none, and records it as applied in
// those that have no version. It returns the file, empty if the config names no directory of migrations.
func recordStructure(ctx context.Context, a *cli.App, loaded shards.Config, m *shards.Map, with shards.Set) (string, error) {
	dir := loaded.MigrationsDir()
	if dir == "" || with.Len() == 0 {
		return "", nil
	}
	path := filepath.Join(dir, adopted)
	if err := writeStructure(ctx, m, with, dir, path); err != nil {
		return "", err
	}
	cfg := migrate.Config{Map: m, Shards: with, Files: os.DirFS(dir), TemplateEnv: a.TemplateEnv}
	status, err := migrate.Status(ctx, cfg)
	if err != nil {
		return path, fmt.Errorf("versions of shards: %w", err)
	}
	fresh := shards.Set{}
	for _, host := range status.Hosts {
		for _, v := range host.Versions {
			if v.Version == 0 {
				fresh = fresh.Union(v.Shards)
			}
		}
	}
	if fresh.Len() == 0 {
		return path, nil
	}
	cfg.Shards = fresh
	if _, err := migrate.Force(ctx, cfg, 1); err != nil {
		return path, fmt.Errorf("recording %s as applied: %w", path, err)
	}
	return path, nil
}

// writeStructure writes the file. An existing one is kept: it has the structure of other shards.
func writeStructure(ctx context.Context, m *shards.Map, with shards.Set, dir, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot make the directory of migrations: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return fmt.Errorf("%s has migrations, such as %s: expected none, or %s with the structure of the old tables", dir, filepath.Base(files[0]), adopted)
	}
	candidates := slices.Collect(with.All())
	s, err := snapshot.Take(ctx, m, candidates[:min(2, len(candidates))]...)
	if err != nil {
		return fmt.Errorf("the structure of shards for %s: %w", path, err)
	}
	text, err := rows.Migration(ctx, rows.Config{Map: m}, candidates[0], ofAdoption.ReplaceAllString(s.Text(), ""))
	if err != nil {
		return fmt.Errorf("the sequences of shards for %s: %w", path, err)
	}
	text = "-- The structure of the shards when they got tables of their own: kiloshard adopt tables has written it, and has recorded it as applied.\n" + text
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("cannot write the migration: %w", err)
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
