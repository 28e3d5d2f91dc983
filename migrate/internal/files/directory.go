// Package files reads a directory of tern's migrations, checks the files, and renders them for a shard.
package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"unicode"

	tern "github.com/jackc/tern/v2/migrate"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
)

// Directory is the directory of migrations, as read at the start of the run.
type Directory struct {
	m         *shards.Map
	files     fs.FS
	Names     []string             // by number, from 1
	Checksums []string             // by number, from 1: SHA-256 of the file, in hexadecimal
	firstLine map[Direction][]int  // by number, from 1: the line where the file's part begins
	templates []bool               // by number, from 1: the file has a template
	Unwritten []bool               // by number, from 1: the up part has no SQL
	once      []bool               // by number, from 1: the file runs once a host
	Shared    []File               // the files that run once a host
	plain     map[Direction][]File // by number, from 1: the same for all shards if no file has a template; else nil
}

// Direction is the direction of a run, or of an entry in the ledger.
type Direction string

// The directions.
const (
	Up     Direction = "up"
	Down   Direction = "down"
	Force  Direction = "force"  // a version that was set by hand
	Shared Direction = "shared" // up, of a file that runs once a host
)

// File is one part of a migration, up or down, rendered for one shard.
type File struct {
	Number    int32
	Name      string
	Direction Direction
	After     int32  // the version of a shard that has run it
	Checksum  string // of the file
	SQL       string // the rendered part, without surrounding white space; empty if the file has no down part
	FirstLine int    // the 1-based line of the file on which SQL begins
	Rendered  bool   // SQL was rendered from a template

	Statements []Statement
	Sure       bool // Statements is complete, and its ends are right
	DisableTx  bool // it runs outside a transaction
	Unwritten  bool // the up part has no SQL; the down part does not run either
	MarkAbove  bool // the down part runs outside a transaction because of the mark in the up part
}

var errNoUp = errors.New("it is not written yet: its up part has no SQL; for a file that does nothing, expected \"select 1\"")

// upDownSeparator is the line of tern's between the up part and the down part.
const upDownSeparator = "---- create above / drop below ----"

// Read reads and checks a directory of migrations. It renders them for one shard, so a template that does not
// render is an error before anything runs.
func Read(m *shards.Map, files fs.FS, sample shards.Number, templateEnv bool, logger *slog.Logger) (*Directory, error) {
	names, err := fileNames(files, logger)
	if err != nil {
		return nil, err
	}
	d := &Directory{m: m, Names: names, firstLine: map[Direction][]int{}}
	var unwritten map[string]bool
	if d.files, unwritten, err = inMemory(files); err != nil {
		return nil, err
	}
	anyTemplate := false
	for _, name := range names {
		body, err := fs.ReadFile(d.files, name)
		if err != nil {
			return nil, fmt.Errorf("the migrations directory: %w", err)
		}
		if err := checkBody(name, body); err != nil {
			return nil, err
		}
		once, err := isShared(name, string(body))
		if err != nil {
			return nil, err
		}
		d.once = append(d.once, once)
		upPart, downPart, _ := strings.Cut(string(body), upDownSeparator)
		d.Unwritten = append(d.Unwritten, unwritten[name])
		d.firstLine[Up] = append(d.firstLine[Up], 1+blankLines(upPart))
		d.firstLine[Down] = append(d.firstLine[Down], 1+strings.Count(upPart, "\n")+blankLines(downPart))
		d.Checksums = append(d.Checksums, fmt.Sprintf("%x", sha256.Sum256(body)))
		// A text without this mark renders to itself.
		template := strings.Contains(string(body), "{{")
		d.templates = append(d.templates, template)
		anyTemplate = anyTemplate || template
	}
	if !templateEnv {
		if err := d.checkTemplates(); err != nil {
			return nil, err
		}
	}
	rendered, err := d.render(sample)
	if err != nil {
		return nil, err
	}
	d.Shared = d.scanned(rendered[Shared])
	for _, f := range d.Shared {
		if err := d.checkShared(f, rendered[Down][f.Number-1].SQL); err != nil {
			return nil, err
		}
	}
	d.passShared(rendered)
	if !anyTemplate {
		d.plain = map[Direction][]File{Up: d.scanned(rendered[Up]), Down: d.scanned(rendered[Down])}
	}
	return d, nil
}

// blankLines returns the number of blank lines at the beginning of a text.
func blankLines(text string) int {
	return strings.Count(text[:len(text)-len(strings.TrimLeftFunc(text, unicode.IsSpace))], "\n")
}

// Newest returns the version of the newest file.
func (d *Directory) Newest() int32 { return int32(len(d.Names)) }

// NameOf returns the file name of a version, empty if there is none.
func (d *Directory) NameOf(version int32) string {
	if version < 1 || version > d.Newest() {
		return ""
	}
	return d.Names[version-1]
}

// Between returns the names of the files that lead from one version to another, in the order in which they run.
func (d *Directory) Between(from, to int32) []string {
	if from <= to {
		return d.Names[from:to]
	}
	names := slices.Clone(d.Names[to:from])
	slices.Reverse(names)
	return names
}

// Pending returns the files that take shard n from one version to another, in order; none if it is at the target or past
// it.
func (d *Directory) Pending(n shards.Number, from, to int32, way Direction) ([]File, error) {
	if way == Force {
		return []File{d.forced(to)}, nil
	}
	if way == Up && from >= to || way == Down && from <= to {
		return nil, nil
	}
	low, high := min(from, to), max(from, to)
	var files []File
	if d.plain != nil {
		files = slices.Clone(d.plain[way][low:high])
	} else {
		rendered, err := d.render(n)
		if err != nil {
			return nil, err
		}
		d.passShared(rendered)
		files = d.scanned(rendered[way][low:high])
	}
	if way == Down {
		slices.Reverse(files)
	}
	return files, nil
}

// render loads all files for shard n, by tern.
func (d *Directory) render(n shards.Number) (map[Direction][]File, error) {
	migrator, err := tern.NewMigratorEx(context.Background(), nil, versions.Table, &tern.MigratorOptions{}) // without a connection, which loading does not need
	if err != nil {
		return nil, err
	}
	migrator.Data = map[string]any{"schema": d.m.Schema(n), "shard": int(n)}
	if err := migrator.LoadMigrations(d.files); err != nil {
		if errors.Is(err, tern.ErrNoFwMigration) { // it names no file, but tern loads them in order
			return nil, &fileerror.Error{File: d.Names[len(migrator.Migrations)], Err: errNoUp}
		}
		if wrong := d.templateError(err); wrong != nil {
			return nil, wrong
		}
		return nil, fmt.Errorf("migrations for shard %d: %w", n, err)
	}
	files := map[Direction][]File{}
	for i, migration := range migrator.Migrations {
		if d.Unwritten[i] {
			migration.UpSQL, migration.DownSQL = "", ""
		}
		f := File{Number: migration.Sequence, Name: migration.Name, Checksum: d.Checksums[i], Rendered: d.templates[i], Unwritten: d.Unwritten[i]}
		f.DisableTx = disableTxPattern.MatchString(migration.UpSQL)
		f.Direction, f.After, f.SQL, f.FirstLine = Up, f.Number, migration.UpSQL, d.firstLine[Up][i]
		files[Up] = append(files[Up], f)
		if d.once[i] {
			f.Direction = Shared
			files[Shared] = append(files[Shared], f)
		}
		f.Direction, f.After, f.SQL, f.FirstLine = Down, f.Number-1, migration.DownSQL, d.firstLine[Down][i]
		f.MarkAbove = f.DisableTx && f.SQL != "" && !disableTxPattern.MatchString(f.SQL)
		f.DisableTx = f.DisableTx || disableTxPattern.MatchString(f.SQL)
		files[Down] = append(files[Down], f)
		if d.templates[i] && strings.Contains(migration.UpSQL+migration.DownSQL, "<no value>") {
			return nil, d.unknownValue(migration.Name)
		}
	}
	return files, nil
}

// scanned returns the files with their statements.
func (d *Directory) scanned(files []File) []File {
	for i := range files {
		files[i].Statements, files[i].Sure = split(files[i].SQL)
	}
	return files
}

// forced returns the file that sets a version by hand: no SQL, under the name of the version's file.
func (d *Directory) forced(version int32) File {
	f := File{Number: version, After: version, Direction: Force, Sure: true}
	if version > 0 {
		f.Name, f.Checksum = d.Names[version-1], d.Checksums[version-1]
	}
	return f
}

// HasTemplates reports whether a file has a template, so that its text differs from shard to shard.
func (d *Directory) HasTemplates() bool { return d.plain == nil }
