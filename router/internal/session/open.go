package session

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/primary"
)

// EndLimit is how long the end of a connection may take.
const EndLimit = 5 * time.Second

// Open makes the session of a new connection.
//
// A pooler between here and the server shows in the number of the server's process, which it does not know: the number
// that it gave us is its own. What is set for a session means nothing then, and what pgx prepares by itself on such a
// connection would be lost: the connection is made again in another mode. The sessions behind it are others' too, so that
// their own path, the base path, is what it is for the role; else it is empty.
func Open(ctx context.Context, conn *pgx.Conn, h *Host) (*Session, error) {
	s := &Session{host: h, Conn: conn, wire: primary.ConnOf(conn.PgConn().Conn()), statements: newStatements(h.Statements), entered: map[string]*entered{}}
	h.Types.Set(conn.TypeMap())
	server := "" // a pooler may lead to another one each time
	if h.ServerOf != nil {
		var err error
		if server, err = h.ServerOf(ctx, conn.PgConn()); err != nil {
			return nil, err
		}
	}
	const query = `select pid, extract(epoch from backend_start), reset_val,
 case when pid::pg_catalog.int8 operator(pg_catalog.=) $1::pg_catalog.int8 then pg_catalog.set_config('search_path', $2, false) end
from pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()), pg_catalog.pg_settings where name operator(pg_catalog.=) 'search_path'`
	given := fmt.Sprint(conn.PgConn().PID())
	values := [][]byte{[]byte(given), []byte(reportsMark)}
	result := conn.PgConn().ExecParams(ctx, query, values, nil, nil, nil).Read() // past pgx's tracer: it is no caller's
	if result.Err != nil {
		return nil, result.Err
	}
	s.pid, s.started = string(result.Rows[0][0]), string(result.Rows[0][1])
	ofRole := string(result.Rows[0][2])
	s.pooled = s.pid != given
	switch {
	case s.pooled && conn.Config().DefaultQueryExecMode != pgx.QueryExecModeExec:
		if !h.Pooled.Swap(true) {
			h.Log.Info("there is a pooler: nothing is prepared from now on", slog.String("host", h.Name))
		}
		return nil, ErrPooled
	case s.pooled: // a cancel request may be passed on late
		s.base = ofRole
		return s, nil
	}
	s.reports = h.Keeps && h.Mode == pgx.QueryExecModeCacheStatement && !s.onlyReads() && s.Path() == reportsMark
	s.Server, s.leaving = server, leavingOf(conn.PgConn())
	if s.leaving != nil {
		s.leaving.cancel = s.Cancel
	}
	if err := s.ResetPath(ctx); err != nil {
		return nil, err
	}
	return s, s.prepareMissing(ctx)
}

// Clean takes off the session what callers may have left on it, if there was any sign of it. A connection for which that
// goes wrong is closed. The words of SQL are no sign where backslashes escape in strings.
func (s *Session) Clean() {
	if !s.Left && !s.escapes() || s.Conn.IsClosed() || s.Conn.PgConn().IsBusy() || s.Conn.PgConn().TxStatus() != 'I' {
		return // nothing was left, or the connection will be closed
	}
	ctx, cancel := context.WithTimeout(context.Background(), EndLimit)
	defer cancel()
	const query = `close all; set session authorization default; unlisten *; select pg_catalog.pg_advisory_unlock_all();
discard temp; discard sequences; reset all;
do $$ declare prepared text; begin
for prepared in select name from pg_catalog.pg_prepared_statements where from_sql loop execute pg_catalog.format('deallocate %I', prepared); end loop;
end $$`
	s.Left = false
	_, err := s.Conn.PgConn().Exec(ctx, query).ReadAll()
	if err == nil && s.host.AfterConnect != nil {
		err = s.host.AfterConnect(ctx, s.Conn) // what it set has been reset too
	}
	if err == nil {
		err = s.ResetPath(ctx)
	}
	if err != nil {
		_ = s.Conn.Close(ctx) // an error leaves it closed, too
	}
}
