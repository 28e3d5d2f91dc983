package files

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

// foreignDown are lines with which other programs begin the way down in the same file. To tern they are comments, so what
// follows them would run as part of the way up.
var foreignDown = []struct {
	of   string
	line *regexp.Regexp
}{
	{"goose", regexp.MustCompile(`(?i)^--\s*\+\s*goose\s+down\b`)},
	{"dbmate", regexp.MustCompile(`(?i)^--\s*migrate\s*:\s*down\b`)},
	{"sql-migrate", regexp.MustCompile(`(?i)^--\s*\+\s*migrate\s+down\b`)},
	{"micrate", regexp.MustCompile(`(?i)^--\s*\+\s*micrate\s+down\b`)},
	{"rambler", regexp.MustCompile(`(?i)^--\s*rambler\s+down\b`)},
	{"MyBatis Migrations", regexp.MustCompile(`(?i)^--\s*//\s*@undo\b`)},
	{"Play", regexp.MustCompile(`(?i)^#?\s*-+\s*!downs\b`)},
	{"node-pg-migrate", regexp.MustCompile(`(?i)^-[-\s]*down migration\b`)},
	{"another program", regexp.MustCompile(`(?i)^-[-\s+!@/\[(:=]*(down|downs|undo|rollback)[-\s\])/:=]*$`)},
}

// foreignNames are file names of programs that keep the way down in a file of its own.
var foreignNames = regexp.MustCompile(`(?i)\.(up|down|undo|do|rollback|revert)\.sql$`)

// checkName returns an error for the name of a file whose way down is in another file.
func checkName(name string) error {
	if ending := foreignNames.FindString(name); ending != "" {
		return &fileerror.Error{File: name, Err: fmt.Errorf("its name ends in %s, as for golang-migrate: expected one file for both ways, with the line %q between them", ending, upDownSeparator)}
	}
	return nil
}

// checkBody returns a [fileerror.Error] for a file that tern would read otherwise than its author meant.
func checkBody(name string, body []byte) error {
	wrong := func(offset int, err error) error {
		return &fileerror.Error{File: name, Line: 1 + bytes.Count(body[:offset], []byte("\n")), Err: err}
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return wrong(0, errors.New("it begins with a byte order mark (U+FEFF): save it as UTF-8 without one"))
	}
	if bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff")) {
		return wrong(0, errors.New("it is in UTF-16, by its byte order mark: save it as UTF-8"))
	}
	at, up := 0, true
	for line := range bytes.Lines(body) {
		if bad := invalidUTF8(line); bad >= 0 {
			return wrong(at, fmt.Errorf("byte %d of the line, 0x%02x, is not UTF-8: save the file as UTF-8", bad+1, line[bad]))
		}
		if up {
			var err error
			if up, err = checkLine(strings.TrimSpace(string(line))); err != nil {
				return wrong(at, err)
			}
		}
		at += len(line)
	}
	return nil
}

// checkLine returns false for tern's separator, and an error for a line that was meant as one.
func checkLine(line string) (up bool, err error) {
	if line == upDownSeparator {
		return false, nil
	}
	if !strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "#") {
		return true, nil
	}
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, line)
	if strings.HasPrefix(letters, "createabove") || strings.HasSuffix(letters, "dropbelow") || strings.Contains(line, upDownSeparator) {
		return true, fmt.Errorf("the line %q is not tern's separator: expected exactly %q", sqltext.Shortened(line), upDownSeparator)
	}
	for _, f := range foreignDown {
		if f.line.MatchString(line) {
			return true, fmt.Errorf("the line %q begins the way down of %s; here it is a comment, and what follows it would run on the way up: expected %q",
				sqltext.Shortened(line), f.of, upDownSeparator)
		}
	}
	return true, nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, -1 for none.
func invalidUTF8(line []byte) int {
	for at := 0; at < len(line); {
		r, size := utf8.DecodeRune(line[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// psqlCommand returns the offset of the first command of psql, such as \restrict; -1 for none.
func (f File) psqlCommand() int {
	for t := range sqltext.Tokens(f.SQL) {
		if t.Is(`\`) {
			return t.Start
		}
	}
	return -1
}
