package statements

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/script"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// progress is how far one shard is in a file that runs statement by statement.
type progress struct {
	done    int  // number of statements done; SET and RESET are not recorded
	changed bool // statements of an earlier form of the file are done

	entry      ledger.Entry
	wait       string // lock_timeout for the ledger
	began      string // when the next statement begins: seconds since the Unix epoch, by the server's clock
	user, role string // the session's, before the file changes them
	inside     string // the query that refuses changes outside the shard
}

// resume prepares a session for a file, and reads from the ledger how far the shard is in it.
func resume(ctx context.Context, s *session.Session, shape script.Shape, f files.File) (progress, error) {
	p := progress{entry: shape.Entry(f), wait: cmp.Or(script.Milliseconds(shape.LockTimeout), connect.LockWait)}
	p.entry.Checksum = fmt.Sprintf("%x", sha256.Sum256([]byte(f.SQL))) // of the rendered SQL
	p.inside = shape.Inside()
	query := fmt.Sprintf("%s; %s; set search_path = %s; set synchronous_commit = off; ", session.Neutral, session.EndWhenIdle, shape.SearchPath)
	if shape.StatementTimeout > 0 {
		query += fmt.Sprintf("set statement_timeout = %d; ", max(1, shape.StatementTimeout.Milliseconds()))
	}
	query += session.LockWait + fmt.Sprintf(`
		select coalesce(pg_catalog.max(statement) filter (where same), 0),
		       coalesce(pg_catalog.bool_or(not same), false),
		       pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()),
		       pg_catalog.current_setting('session_authorization'), pg_catalog.current_setting('role')
		from (
			select statement, direction = '%s' and checksum = '%s' as same
			from kiloshard.ledger where shard = %d and version = %d and current and statement is not null
		) as begun`, f.Direction, p.entry.Checksum, shape.Shard, f.Number)
	results, err := s.Conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return p, connect.NameHolders(ctx, s.Conn, err)
	}
	row := results[len(results)-1].Rows[0]
	p.done, err = strconv.Atoi(string(row[0]))
	if err == nil && p.done > len(f.Statements) {
		err = errors.New("the ledger has more statements of the file than the file has")
	}
	p.changed, p.began, p.user, p.role = string(row[1]) == "t", string(row[2]), string(row[3]), string(row[4])
	return p, err
}

// entered returns the SQL that records a statement of the file, 1-based, as done, whatever role the file has set.
func (p progress) entered(statement int) []string {
	e := p.entry
	return []string{
		fmt.Sprintf("select pg_catalog.set_config('lock_timeout', '%s', true)", p.wait),
		fmt.Sprintf("select pg_catalog.set_config('session_authorization', %s, true)", sqltext.Quote(p.user)),
		fmt.Sprintf("select pg_catalog.set_config('role', %s, true)", sqltext.Quote(p.role)),
		"select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)",
		p.inside,
		fmt.Sprintf("select kiloshard.record_statement(%s, %s, %d, %d, %s, '%s', '%s', %d, %s)",
			sqltext.Quote(e.Run), sqltext.Quote(e.Who), e.Shard, e.Version, sqltext.Quote(e.File), e.Direction, e.Checksum, statement, p.began),
	}
}
