package migrate

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// ReplacedError says that shards ran another file under a file's number. In these shards the file would never run.
type ReplacedError struct {
	Version int32
	File    string // the file that has the number now
	Ran     string // the file that the shards ran
	Shards  shards.Set
}

// Error names both files and the shards, and what was expected.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("%s has the number of %s, which shards %s have run: it would never run there; expected a number that no other file had, "+
		"or kiloshard migrate accept %d if both are the same migration", e.File, e.Ran, e.Shards, e.Version)
}

// Replaced reports whether another file now has the number.
func (c ChangedFile) Replaced() bool { return c.Now != "" && c.Now != c.File }

// Replaced returns a [ReplacedError] for each file that has the number of another one.
func Replaced(changed []ChangedFile) []error {
	var errs []error
	for _, c := range changed {
		if c.Replaced() {
			errs = append(errs, &ReplacedError{Version: c.Version, File: c.Now, Ran: c.File, Shards: c.Shards})
		}
	}
	return errs
}

// replaced returns the errors that keep the run from starting: shards ran other files under the same numbers. [Force] runs
// no file, so it has none.
func (r *run) replaced() []error {
	if r.way == force {
		return nil
	}
	return Replaced(r.changes)
}
