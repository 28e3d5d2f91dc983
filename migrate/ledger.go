package migrate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// entry is a row of a host's ledger: one file in one shard.
type entry struct {
	run, who  string
	shard     shards.Number
	version   int32 // of the file
	file      string
	direction direction
	checksum  string
}

// newRunID returns a unique name for a run: when it began, and a random suffix.
func newRunID(now time.Time) string {
	return now.UTC().Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:6])
}

// me returns the user of this process, as user@machine.
func me() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// done returns a statement that records the entry as done.
func (e entry) done() string { return e.record("null", "null", true) }

// failure returns a statement that records the entry as failed.
func (e entry) failure(err error) string {
	state := ""
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		state = pg.Code
	}
	return e.record(quote(state), quote(shortened(err.Error())), false)
}

func (e entry) record(state, message string, first bool) string {
	return fmt.Sprintf("select kiloshard.record_migration(%s, %s, %s, %t)", e.values(), state, message, first)
}

// values returns the arguments of the ledger's functions.
func (e entry) values() string {
	return fmt.Sprintf("%s, %s, %d, %d, %s, %s, %s",
		quote(e.run), quote(e.who), e.shard, e.version, quote(e.file), quote(string(e.direction)), quote(e.checksum))
}

// quote returns a text as an SQL constant, for standard_conforming_strings on or off. It avoids single quotes if it can:
// after a file that leaves a quote open, the server then reports the open quote and no other error.
func quote(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	const dollar = "$value$"
	if !strings.Contains(text, "$") {
		return dollar + text + dollar
	}
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// ErrNoLedger says that the ledger of a host cannot be made or written.
var ErrNoLedger = errors.New("the ledger kiloshard.ledger cannot be written: expected a role that owns it, or that may insert into it and update it")

// keepLedger creates the ledger of the session's host if it is missing, or upgrades an older one, and checks that the role
// can write it.
//
// Before that it refuses objects of other roles in the helper schema and in the schemas of shards.
func (s *session) keepLedger(ctx context.Context, schemas []string) error {
	ours := sql.Ours{Schemas: schemas, Relations: []string{versionTable}}
	if _, err := s.value(ctx, sql.RefuseForeign(ours)+"select 1"); err != nil {
		s.recover(ctx)
		return err
	}
	there := sql.LedgerIsThere()
	found, err := s.value(ctx, there)
	if err == nil && found != "t" {
		_, err = s.value(ctx, "begin; "+lockWait+sql.Ledger()+"; commit; "+there)
		if err != nil {
			err = connect.NameHolders(ctx, s.conn, err)
			s.recover(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoLedger, err)
	}
	const query = `
		select pg_catalog.has_table_privilege('kiloshard.ledger', 'insert')
		   and pg_catalog.has_table_privilege('kiloshard.ledger', 'update')
		   and pg_catalog.has_table_privilege('kiloshard.ledger', 'select')`
	may, err := s.value(ctx, query)
	if err == nil && may != "t" {
		err = ErrNoLedger
	}
	return err
}

// changedQuery reads from the ledger which files of shards differ from the directory's. It returns none if the ledger is
// missing, unreadable, or made by another role.
const changedQuery = `
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

// ChangedFile is a migration that shards ran in another form than the directory's.
type ChangedFile struct {
	Version int32      `json:"version"`
	File    string     `json:"file"` // its name when it ran
	Now     string     `json:"now"`  // the name of the directory's file of that version; empty if there is none
	Shards  shards.Set `json:"shards"`
}

// changedQuery returns the query for files that differ from the directory's.
func (d *directory) changedQuery() string {
	known := make([]string, len(d.checksums))
	for i, sum := range d.checksums {
		known[i] = fmt.Sprintf("(%d, '%s')", i+1, sum)
	}
	return fmt.Sprintf(changedQuery, strings.Join(known, ", "), sql.Foreign(sql.Ours{}))
}

// parseChanged returns the changed files of the given shards.
func (d *directory) parseChanged(text string, set shards.Set) ([]ChangedFile, error) {
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
			changed = append(changed, ChangedFile{Version: f.Version, File: f.File, Now: d.nameOf(f.Version), Shards: shards.SetOf(here...)})
		}
	}
	return changed, nil
}
