package router

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
)

// openSession makes the session of a new connection.
//
// A pooler between here and the server shows in the number of the server's process, which it does not know: the number
// that it gave us is its own. What is set for a session means nothing then. It means little, too, where functions set
// the path by themselves.
//
// What pgx prepares by itself on such a connection would be lost, too: the connection is made again in another mode.
func openSession(ctx context.Context, conn *pgx.Conn, h *host) (*session, error) {
	s := &session{host: h, conn: conn, wire: wireOf(conn.PgConn().Conn()), statements: newStatements(h.statements)}
	h.types.set(conn.TypeMap())
	if h.replica != nil {
		if err := h.replica.admit(ctx, conn); err != nil {
			return nil, err
		}
	}
	if h.mode != pgx.QueryExecModeCacheStatement {
		return s, nil
	}
	const query = `select pg_catalog.pg_backend_pid(), exists (
	select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
	where n.nspname not in ('pg_catalog', 'information_schema') and p.prosrc ~* 'search_path')`
	result := conn.PgConn().ExecParams(ctx, query, nil, nil, nil, nil).Read() // past pgx's tracer: it is no caller's
	if result.Err != nil {
		return nil, result.Err
	}
	pid, sets := string(result.Rows[0][0]), string(result.Rows[0][1]) == "t"
	s.pooled = pid != fmt.Sprint(conn.PgConn().PID())
	if s.pooled && conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		if !h.pooled.Swap(true) {
			h.log.Info("there is a pooler: nothing is prepared from now on", slog.String("host", h.Name))
		}
		return nil, errPooled
	}
	s.keeps = !s.pooled && !sets && h.prepareConn == nil
	if h.replica != nil && s.keeps {
		if _, err := conn.PgConn().Exec(ctx, neverWrite).ReadAll(); err != nil {
			return nil, err
		}
		s.safe = true
	}
	return s, nil
}

// neverWrite has all transactions of a session read only. A replica refuses writes by itself, until it is promoted.
const neverWrite = `set default_transaction_read_only = on`

// clean takes off the session what callers may have left on it, if there was any sign of it. A connection for which that
// goes wrong is closed.
func (s *session) clean() {
	if !s.left || s.conn.IsClosed() || s.conn.PgConn().IsBusy() || s.conn.PgConn().TxStatus() != 'I' {
		return // nothing was left, or the connection will be closed
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	const query = `close all; set session authorization default; unlisten *; select pg_catalog.pg_advisory_unlock_all();
discard temp; discard sequences; reset all`
	s.left = false
	s.forgetPath()
	_, err := s.conn.PgConn().Exec(ctx, query).ReadAll()
	if err == nil && s.safe {
		_, err = s.conn.PgConn().Exec(ctx, neverWrite).ReadAll()
	}
	if err == nil && s.host.afterConnect != nil {
		err = s.host.afterConnect(ctx, s.conn) // what it set has been reset too
	}
	if err != nil {
		_ = s.conn.Close(ctx) // whatever it says, the connection is closed
	}
}

// note looks at a caller's SQL before it runs in a transaction or a batch.
func (s *session) note(sql string) error {
	t := s.host.texts.of(sql)
	s.left = s.left || t.leaves
	return t.refused()
}

// refused returns why a shard does not take SQL.
func (t *text) refused() error {
	switch {
	case t.listen:
		return errListen
	case t.goesOn:
		return errPathLost
	}
	return nil
}
