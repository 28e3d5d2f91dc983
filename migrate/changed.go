package migrate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// ChangedFile is a migration that shards ran in another form than the directory's.
type ChangedFile struct {
	Version int32      `json:"version"`
	File    string     `json:"file"` // its name when it ran
	Now     string     `json:"now"`  // the name of the directory's files.File of that version; empty if there is none
	Shards  shards.Set `json:"shards"`
}

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

// changedQueryText reads from the ledger which files of shards differ from the directory's. It returns none if the ledger is
// missing, unreadable, or made by another role.
const changedQueryText = `
do $kiloshard$
declare
	changed text := '[]';
begin
	if to_regclass('kiloshard.ledger') is not null and not exists (select from (%[2]s) f where kind <> 'grant') then
		begin
			execute $query$
				select coalesce(json_agg(json_build_object('version', version, 'file', file, 'shards', numbers) order by version, file), '[]')
				from (
					select version, file, array_agg(shard order by shard) as numbers
					from kiloshard.ledger
					where current and statement is null and (version, checksum) not in (%[1]s)
					group by version, file
				) as other
			$query$ into changed;
		exception when insufficient_privilege or undefined_column then null;
		end;
	end if;
	perform set_config('kiloshard.changed', changed, true);
end $kiloshard$;
select current_setting('kiloshard.changed')`

// changedQuery returns the query for files that differ from the directory's.
func changedQuery(d *files.Directory) string {
	known := make([]string, len(d.Checksums))
	for i, sum := range d.Checksums {
		known[i] = fmt.Sprintf("(%d, '%s')", i+1, sum)
	}
	return fmt.Sprintf(changedQueryText, strings.Join(known, ", "), sql.Foreign(sql.Ours{}))
}

// parseChanged returns the changed files of the given shards.
func parseChanged(d *files.Directory, text string, set shards.Set) ([]ChangedFile, error) {
	var found []struct {
		Version int32
		File    string
		Shards  []shards.Number
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return nil, fmt.Errorf("its ledger: %w", err)
	}
	var changed []ChangedFile
	for _, f := range found {
		var here []shards.Number
		for _, n := range f.Shards {
			if set.Has(n) {
				here = append(here, n)
			}
		}
		if len(here) > 0 {
			changed = append(changed, ChangedFile{Version: f.Version, File: f.File, Now: d.NameOf(f.Version), Shards: shards.SetOf(here...)})
		}
	}
	return changed, nil
}

// mergeChanges merges the changed files of two hosts.
func mergeChanges(all, more []ChangedFile) []ChangedFile {
	for _, c := range more {
		i := slices.IndexFunc(all, func(a ChangedFile) bool { return a.Version == c.Version && a.File == c.File })
		if i < 0 {
			all = append(all, c)
			continue
		}
		all[i].Shards = all[i].Shards.Union(c.Shards)
	}
	slices.SortFunc(all, func(a, b ChangedFile) int { return int(a.Version - b.Version) })
	return all
}
