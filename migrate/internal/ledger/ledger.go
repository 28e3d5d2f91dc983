// Package ledger writes a host's ledger: which file ran in which shard, when, and by whom.
package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// Entry is a row of a host's ledger: one file in one shard.
type Entry struct {
	Run, Who  string
	Shard     shards.Number
	Version   int32 // of the file
	File      string
	Direction files.Direction
	Checksum  string
}

// NewRun returns a unique name for a run: when it began, and a random suffix.
func NewRun(now time.Time) string {
	return now.UTC().Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:6])
}

// Me returns the user of this process, as user@machine.
func Me() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// Done returns a statement that records the entry as done.
func (e Entry) Done() string { return e.record("null", "null", true) }

// Failure returns a statement that records the entry as failed.
func (e Entry) Failure(err error) string {
	state := ""
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		state = pg.Code
	}
	return e.record(sqltext.Quote(state), sqltext.Quote(sqltext.Shortened(err.Error())), false)
}

func (e Entry) record(state, message string, first bool) string {
	return fmt.Sprintf("select kiloshard.record_migration(%s, %s, %s, %t)", e.Values(), state, message, first)
}

// Values returns the arguments of the ledger's functions.
func (e Entry) Values() string {
	return fmt.Sprintf("%s, %s, %d, %d, %s, %s, %s",
		sqltext.Quote(e.Run), sqltext.Quote(e.Who), e.Shard, e.Version, sqltext.Quote(e.File), sqltext.Quote(string(e.Direction)), sqltext.Quote(e.Checksum))
}

// ErrNoLedger says that the ledger of a host cannot be made or written.
var ErrNoLedger = errors.New("the ledger kiloshard.ledger cannot be written: expected a role that owns it, or that may insert into it and update it")

// Keep creates the ledger of the session's host if it is missing, or upgrades an older one, and checks that the role
// can write it.
//
// Before that it refuses objects of other roles in the helper schema and in the schemas of shards.
func Keep(ctx context.Context, s *session.Session, schemas []string) error {
	ours := sql.Ours{Schemas: schemas, Relations: []string{versions.Table}}
	if _, err := s.Value(ctx, sql.RefuseForeign(ours)+"select 1"); err != nil {
		s.Recover(ctx)
		return err
	}
	there := sql.LedgerIsThere()
	found, err := s.Value(ctx, there)
	if err == nil && found != "t" {
		_, err = s.Value(ctx, "begin; "+session.LockWait+sql.Ledger()+"; commit; "+there)
		if err != nil {
			err = connect.NameHolders(ctx, s.Conn, err)
			s.Recover(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoLedger, err)
	}
	const query = `
		select pg_catalog.has_table_privilege('kiloshard.ledger', 'insert')
		   and pg_catalog.has_table_privilege('kiloshard.ledger', 'update')
		   and pg_catalog.has_table_privilege('kiloshard.ledger', 'select')`
	may, err := s.Value(ctx, query)
	if err == nil && may != "t" {
		err = ErrNoLedger
	}
	return err
}
