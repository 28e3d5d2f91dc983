package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

// namePattern is tern's pattern of migration file names.
var namePattern = regexp.MustCompile(`\A(\d+)_.+\.sql\z`)

// errNoFiles says that the directory has no migration.
var errNoFiles = errors.New("the migrations directory has no migration: expected files such as 001_users.sql")

// fileNames returns the names of the migration files, that of number 1 first. The numbers must go from 1 up without gaps or
// duplicates. They are checked here because tern's own messages do not name the files, and tern does not handle a 0 or
// a huge number.
func fileNames(files fs.FS, logger *slog.Logger) ([]string, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("the migrations directory: %w", err)
	}
	type numbered struct {
		number int64
		name   string
	}
	var found []numbered
	for _, entry := range entries {
		match := namePattern.FindStringSubmatch(entry.Name())
		if match == nil || entry.IsDir() {
			if !entry.IsDir() && strings.HasSuffix(entry.Name(), ".sql") {
				logger.Warn("not a migration: its name is not like 001_users.sql", slog.String("file", entry.Name()))
			}
			continue
		}
		if err := checkName(entry.Name()); err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(match[1], 10, 32)
		if err != nil || n < 1 {
			return nil, &fileerror.Error{File: entry.Name(), Err: fmt.Errorf("its number is %s: expected 1, 2, 3 and so on", match[1])}
		}
		found = append(found, numbered{n, entry.Name()})
	}
	if len(found) == 0 {
		return nil, errNoFiles
	}
	slices.SortStableFunc(found, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	names := make([]string, len(found))
	for i, f := range found {
		switch {
		case i > 0 && f.number == found[i-1].number:
			return nil, &fileerror.Error{File: f.name, Err: fmt.Errorf("%s has the number %d already", found[i-1].name, f.number)}
		case f.number != int64(i)+1:
			return nil, &fileerror.Error{File: f.name, Err: fmt.Errorf("no file has the number %d: expected numbers without a gap", i+1)}
		}
		names[i] = f.name
	}
	return names, nil
}

// Names returns the names of the migrations of a directory, that of version 1 first.
func Names(files fs.FS) ([]string, error) { return fileNames(files, slog.New(slog.DiscardHandler)) }
