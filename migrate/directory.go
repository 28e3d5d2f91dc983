package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"unicode"

	tern "github.com/jackc/tern/v2/migrate"

	"github.com/kiloshard/kiloshard/shards"
)

// directory is a directory of migrations as it was when the run began.
type directory struct {
	m         *shards.Map
	files     fs.FS
	names     []string // by number, from 1
	firstLine []int    // by number, from 1: the line where the file's up part begins
	templates []bool   // by number, from 1: the file has a template in it
	plain     []file   // what every shard gets, when no file has a template; else nil
}

// file is one migration as one shard gets it.
type file struct {
	number    int32
	name      string
	sql       string // the up part, rendered, without white space around it
	firstLine int    // the 1-based line of the file on which sql begins
	rendered  bool   // sql comes out of a template

	statements []statement
	sure       bool // statements are all there are, and end where they should
}

var errNoUp = errors.New("there is no SQL in it to go up with")

// Where tern parts the way up from the way down.
const upDownSeparator = "---- create above / drop below ----"

// readDirectory reads and checks a directory of migrations. It renders them for one shard, so that
// a template that no shard can render is found before anything is run.
func readDirectory(m *shards.Map, files fs.FS, sample shards.Number, logger *slog.Logger) (*directory, error) {
	names, err := fileNames(files, logger)
	if err != nil {
		return nil, err
	}
	d := &directory{m: m, names: names}
	if d.files, err = snapshot(files); err != nil {
		return nil, err
	}
	anyTemplate := false
	for _, name := range names {
		body, err := fs.ReadFile(d.files, name)
		if err != nil {
			return nil, fmt.Errorf("the migrations directory: %w", err)
		}
		up, _, _ := strings.Cut(string(body), upDownSeparator)
		blank := up[:len(up)-len(strings.TrimLeftFunc(up, unicode.IsSpace))]
		d.firstLine = append(d.firstLine, 1+strings.Count(blank, "\n"))
		// Go's templates do nothing to a text without this mark.
		template := strings.Contains(string(body), "{{")
		d.templates = append(d.templates, template)
		anyTemplate = anyTemplate || template
	}
	rendered, err := d.render(sample)
	if err != nil {
		return nil, err
	}
	if !anyTemplate {
		d.plain = d.scanned(rendered)
	}
	return d, nil
}

// newest returns the version of the newest file.
func (d *directory) newest() int32 { return int32(len(d.names)) }

// pending returns the files that take shard n from one version to another, in order.
func (d *directory) pending(n shards.Number, from, to int32) ([]file, error) {
	if from >= to {
		return nil, nil
	}
	if d.plain != nil {
		return d.plain[from:to], nil
	}
	rendered, err := d.render(n)
	if err != nil {
		return nil, err
	}
	return d.scanned(rendered[from:to]), nil
}

// render loads all files by tern for shard n.
func (d *directory) render(n shards.Number) ([]file, error) {
	migrator, err := tern.NewMigratorEx(context.Background(), nil, versionTable, &tern.MigratorOptions{}) // without a connection it does no more than load
	if err != nil {
		return nil, err
	}
	migrator.Data = map[string]any{"schema": d.m.Schema(n), "shard": int(n)}
	if err := migrator.LoadMigrations(d.files); err != nil {
		if errors.Is(err, tern.ErrNoFwMigration) { // which does not tell of which file; they are loaded in order
			return nil, &FileError{File: d.names[len(migrator.Migrations)], Err: errNoUp}
		}
		return nil, fmt.Errorf("migrations for shard %d: %w", n, err)
	}
	files := make([]file, len(migrator.Migrations))
	for i, migration := range migrator.Migrations {
		files[i] = file{
			number: migration.Sequence, name: migration.Name, sql: migration.UpSQL,
			firstLine: d.firstLine[i], rendered: d.templates[i],
		}
		if d.templates[i] && strings.Contains(migration.UpSQL, "<no value>") {
			return nil, &FileError{File: migration.Name, Err: errors.New("it uses a value that there is not: expected {{.schema}} or {{.shard}}")}
		}
	}
	return files, nil
}

// scanned returns the files with their statements.
func (d *directory) scanned(files []file) []file {
	for i := range files {
		files[i].statements, files[i].sure = split(files[i].sql)
	}
	return files
}
