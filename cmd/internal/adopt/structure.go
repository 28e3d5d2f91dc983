package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/internal/atomicfile"
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
// those that have no version. It returns the file, empty if the config names no directory of migrations. While
// none of the shards has a version, a file that is there must have their structure.
func recordStructure(ctx context.Context, a *cli.App, loaded shards.Config, m *shards.Map, with shards.Set) (string, error) {
	dir := loaded.MigrationsDir()
	if dir == "" || with.Len() == 0 {
		return "", nil
	}
	path := filepath.Join(dir, adopted)
	written, err := writeStructure(ctx, m, with, dir, path)
	if err != nil {
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
	if !written && fresh.Len() == with.Len() { // the file may be of an adoption that was taken back
		if err := checkStructure(ctx, m, with, path); err != nil {
			return path, err
		}
	}
	cfg.Shards = fresh
	if _, err := migrate.Force(ctx, cfg, 1); err != nil {
		return path, fmt.Errorf("recording %s as applied: %w", path, err)
	}
	return path, nil
}

// writeStructure writes the file, whole or not at all, unless it is there. It reports whether it has.
func writeStructure(ctx context.Context, m *shards.Map, with shards.Set, dir, path string) (bool, error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return false, fmt.Errorf("cannot make the directory of migrations: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil {
		return false, err
	}
	if len(files) > 0 {
		return false, fmt.Errorf("%s has migrations, such as %s: expected none, or %s with the structure of the old tables", dir, filepath.Base(files[0]), adopted)
	}
	text, err := structureOf(ctx, m, with)
	if err == nil {
		err = atomicfile.Replace(path, text, 0)
	}
	if err != nil {
		return false, fmt.Errorf("cannot write %s: %w", path, err)
	}
	return true, nil
}

// checkStructure returns an error if the file has another structure than shards.
func checkStructure(ctx context.Context, m *shards.Map, with shards.Set, path string) error {
	found, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	expected, err := structureOf(ctx, m, with)
	if err == nil && !bytes.Equal(found, expected) {
		err = fmt.Errorf("%s has another structure than shards %s; expected theirs: move it away, and run this again", path, with)
	}
	return err
}

// structureOf returns the structure of shards as a migration.
func structureOf(ctx context.Context, m *shards.Map, of shards.Set) ([]byte, error) {
	candidates := slices.Collect(of.All())
	s, err := snapshot.Take(ctx, m, candidates[:min(2, len(candidates))]...)
	if err != nil {
		return nil, fmt.Errorf("the structure of shards: %w", err)
	}
	text, err := rows.Migration(ctx, rows.Config{Map: m}, candidates[0], ofAdoption.ReplaceAllString(s.Text(), ""))
	if err != nil {
		return nil, fmt.Errorf("the sequences of shards: %w", err)
	}
	const head = "-- The structure of the shards when they got tables of their own: kiloshard adopt tables has written it, and has recorded it as applied.\n"
	return []byte(head + text), nil
}
