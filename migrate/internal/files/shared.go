package files

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

// SharedMark is the first line of a file that runs once on each host.
const SharedMark = "-- kiloshard: once a host"

// markPattern finds lines that look like marks of ours.
var markPattern = regexp.MustCompile(`(?mi)^[ \t]*-+[ \t]*kiloshard[ \t]*:.*$`)

var (
	errMark           = fmt.Errorf("a mark for kiloshard: expected %q, as the file's first line", SharedMark)
	errSharedNone     = errors.New("it is marked to run once a host, and the config has no schemas for it: expected them in the config, such as \"shared: [app]\"")
	errSharedOutside  = errors.New("it is marked both to run once a host and \"tern: disable-tx\": expected one of the two")
	errSharedTemplate = errors.New("it is marked to run once a host, and has a template: expected none, since the file runs in no shard")
	errSharedDown     = errors.New("it is marked to run once a host, and has a way down: expected none, since other shards may need it; to drop something, write another file")
	errSharedUnsure   = errors.New("it is marked to run once a host, and cannot be split into statements: expected every quote, comment and parenthesis to be closed")
)

// isShared reports whether a file is marked to run once a host.
func isShared(name, body string) (bool, error) {
	marks := markPattern.FindAllStringIndex(body, -1)
	first, _, _ := strings.Cut(body, "\n")
	marked := strings.TrimSuffix(first, "\r") == SharedMark
	if marked {
		marks = marks[1:]
	}
	if len(marks) > 0 {
		return false, &fileerror.Error{File: name, Line: 1 + strings.Count(body[:marks[0][0]], "\n"), Err: errMark}
	}
	return marked, nil
}

// checkShared returns a [fileerror.Error] for a file that cannot run once a host.
func (d *Directory) checkShared(f File, down string) error {
	wrong := func(err error) error { return &fileerror.Error{File: f.Name, Line: 1, Err: err} }
	switch {
	case len(d.m.SharedSchemas()) == 0:
		return wrong(errSharedNone)
	case f.DisableTx:
		return wrong(errSharedOutside)
	case f.Rendered:
		return wrong(errSharedTemplate)
	case down != "":
		return wrong(errSharedDown)
	case !f.Sure:
		return wrong(errSharedUnsure)
	}
	return f.Check()
}

// passShared changes the files that run once a host to what a shard runs of them: on the way up it only checks that its host has
// run the file, and on the way down nothing happens.
func (d *Directory) passShared(rendered map[Direction][]File) {
	for _, f := range d.Shared {
		above, below := &rendered[Up][f.Number-1], &rendered[Down][f.Number-1]
		above.SQL, below.SQL = fmt.Sprintf("select kiloshard.need_shared(%d)", f.Number), "select 1"
		above.DisableTx, below.DisableTx = false, false
	}
}
