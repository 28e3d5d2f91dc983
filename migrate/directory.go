package migrate

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

	"github.com/kiloshard/kiloshard/shards"
)

// directory is the directory of migrations, as read at the start of the run.
type directory struct {
	m         *shards.Map
	files     fs.FS
	names     []string             // by number, from 1
	checksums []string             // by number, from 1: SHA-256 of the file, in hexadecimal
	firstLine map[direction][]int  // by number, from 1: the line where the file's part begins
	templates []bool               // by number, from 1: the file has a template
	unwritten []bool               // by number, from 1: the up part has no SQL
	once      []bool               // by number, from 1: the file runs once a host
	shared    []file               // the files that run once a host
	plain     map[direction][]file // by number, from 1: the same for all shards if no file has a template; else nil
}

// direction is the direction of a run.
type direction string

const (
	up    direction = "up"
	down  direction = "down"
	force direction = "force" // a version that was set by hand
)

// file is one part of a migration, up or down, rendered for one shard.
type file struct {
	number    int32
	name      string
	direction direction
	after     int32  // the version of a shard that has run it
	checksum  string // of the file
	sql       string // the rendered part, without surrounding white space; empty if the file has no down part
	firstLine int    // the 1-based line of the file on which sql begins
	rendered  bool   // sql was rendered from a template

	statements []statement
	sure       bool // statements is complete, and its ends are right
	disableTx  bool // it runs outside a transaction
	unwritten  bool // the up part has no SQL; the down part does not run either
	markAbove  bool // the down part runs outside a transaction because of the mark in the up part
}

var errNoUp = errors.New("it is not written yet: its up part has no SQL; for a file that does nothing, expected \"select 1\"")

// upDownSeparator is the line of tern's between the up part and the down part.
const upDownSeparator = "---- create above / drop below ----"

// readDirectory reads and checks a directory of migrations. It renders them for one shard, so a template that does not
// render is an error before anything runs.
func readDirectory(m *shards.Map, files fs.FS, sample shards.Number, templateEnv bool, logger *slog.Logger) (*directory, error) {
	names, err := fileNames(files, logger)
	if err != nil {
		return nil, err
	}
	d := &directory{m: m, names: names, firstLine: map[direction][]int{}}
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
		d.unwritten = append(d.unwritten, unwritten[name])
		d.firstLine[up] = append(d.firstLine[up], 1+blankLines(upPart))
		d.firstLine[down] = append(d.firstLine[down], 1+strings.Count(upPart, "\n")+blankLines(downPart))
		d.checksums = append(d.checksums, fmt.Sprintf("%x", sha256.Sum256(body)))
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
	d.shared = d.scanned(rendered[shared])
	for _, f := range d.shared {
		if err := d.checkShared(f, rendered[down][f.number-1].sql); err != nil {
			return nil, err
		}
	}
	d.passShared(rendered)
	if !anyTemplate {
		d.plain = map[direction][]file{up: d.scanned(rendered[up]), down: d.scanned(rendered[down])}
	}
	return d, nil
}

// blankLines returns the number of blank lines at the beginning of a text.
func blankLines(text string) int {
	return strings.Count(text[:len(text)-len(strings.TrimLeftFunc(text, unicode.IsSpace))], "\n")
}

// newest returns the version of the newest file.
func (d *directory) newest() int32 { return int32(len(d.names)) }

// nameOf returns the file name of a version, empty if there is none.
func (d *directory) nameOf(version int32) string {
	if version < 1 || version > d.newest() {
		return ""
	}
	return d.names[version-1]
}

// between returns the names of the files that lead from one version to another, in the order in which they run.
func (d *directory) between(from, to int32) []string {
	if from <= to {
		return d.names[from:to]
	}
	names := slices.Clone(d.names[to:from])
	slices.Reverse(names)
	return names
}

// pending returns the files that take shard n from one version to another, in order; none if it is at the target or past
// it.
func (d *directory) pending(n shards.Number, from, to int32, way direction) ([]file, error) {
	if way == force {
		return []file{d.forced(to)}, nil
	}
	if way == up && from >= to || way == down && from <= to {
		return nil, nil
	}
	low, high := min(from, to), max(from, to)
	var files []file
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
	if way == down {
		slices.Reverse(files)
	}
	return files, nil
}

// render loads all files for shard n, by tern.
func (d *directory) render(n shards.Number) (map[direction][]file, error) {
	migrator, err := tern.NewMigratorEx(context.Background(), nil, versionTable, &tern.MigratorOptions{}) // without a connection, which loading does not need
	if err != nil {
		return nil, err
	}
	migrator.Data = map[string]any{"schema": d.m.Schema(n), "shard": int(n)}
	if err := migrator.LoadMigrations(d.files); err != nil {
		if errors.Is(err, tern.ErrNoFwMigration) { // it names no file, but tern loads them in order
			return nil, &FileError{File: d.names[len(migrator.Migrations)], Err: errNoUp}
		}
		if wrong := d.templateError(err); wrong != nil {
			return nil, wrong
		}
		return nil, fmt.Errorf("migrations for shard %d: %w", n, err)
	}
	files := map[direction][]file{}
	for i, migration := range migrator.Migrations {
		if d.unwritten[i] {
			migration.UpSQL, migration.DownSQL = "", ""
		}
		f := file{number: migration.Sequence, name: migration.Name, checksum: d.checksums[i], rendered: d.templates[i], unwritten: d.unwritten[i]}
		f.disableTx = disableTxPattern.MatchString(migration.UpSQL)
		f.direction, f.after, f.sql, f.firstLine = up, f.number, migration.UpSQL, d.firstLine[up][i]
		files[up] = append(files[up], f)
		if d.once[i] {
			f.direction = shared
			files[shared] = append(files[shared], f)
		}
		f.direction, f.after, f.sql, f.firstLine = down, f.number-1, migration.DownSQL, d.firstLine[down][i]
		f.markAbove = f.disableTx && f.sql != "" && !disableTxPattern.MatchString(f.sql)
		f.disableTx = f.disableTx || disableTxPattern.MatchString(f.sql)
		files[down] = append(files[down], f)
		if d.templates[i] && strings.Contains(migration.UpSQL+migration.DownSQL, "<no value>") {
			return nil, d.unknownValue(migration.Name)
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
