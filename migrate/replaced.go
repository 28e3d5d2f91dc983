package migrate

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// ReplacedError says that a file has a number under which shards have run another file: in these it would never run.
type ReplacedError struct {
	Version int32
	File    string // that has the number now
	Ran     string // that the shards ran under it
	Shards  shards.Set
}

// Error names both files and the shards, and what was expected.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("%s has the number of %s, which shards %s have run: it would never run there; expected a number that no other file had, "+
		"or kiloshard migrate accept %d if both are the same migration", e.File, e.Ran, e.Shards, e.Version)
}

// Replaced reports whether another file has the number now.
func (c ChangedFile) Replaced() bool { return c.Now != "" && c.Now != c.File }

// Replaced returns a [ReplacedError] for each of the files that has the number of another.
func Replaced(changed []ChangedFile) []error {
	var errs []error
	for _, c := range changed {
		if c.Replaced() {
			errs = append(errs, &ReplacedError{Version: c.Version, File: c.Now, Ran: c.File, Shards: c.Shards})
		}
	}
	return errs
}

// replaced returns why the run must not begin: its files are not those that its shards have run. A version that is set by
// hand runs no file.
func (r *run) replaced() []error {
	if r.way == force {
		return nil
	}
	return Replaced(r.changes)
}
