package routes

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// entered is a connection that sends a router's entry before a statement, in one message, and does nothing else that a
// router does: it is slower than a plain connection by the time that the server takes for the entry.
type entered struct {
	conn         *pgx.Conn
	entry, photo *pgconn.StatementDescription
	arguments    [][]byte // of the entry
}

// entered takes the entry of reads from a session of a router: where the server reports the path, that of reads which do not keep it.
func (s *stage) entered(ctx context.Context, r *router.Router, m *shards.Map) (*entered, error) {
	shard, err := forKey(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	var text, path, oid string
	const query = `SELECT current_setting('search_path'), $1::text::regnamespace::oid::text, statement FROM pg_prepared_statements WHERE name IN ('kiloshard_read_entry', 'kiloshard_base_read')`
	if err := shard.QueryRow(ctx, query, m.Schema(0)).Scan(&path, &oid, &text); err != nil {
		return nil, fmt.Errorf("the entry of a router's reads: %w", err)
	}
	e := &entered{arguments: [][]byte{[]byte(path), []byte(m.Schema(0)), {}, []byte(oid)}}
	if e.conn, err = pgx.Connect(ctx, dsn.With(m.Hosts()[0].ConnString(), "search_path", "")); err != nil {
		return nil, err
	}
	s.closeLater(func() { _ = e.conn.Close(context.Background()) }) // all has been read
	if e.entry, err = e.conn.PgConn().Prepare(ctx, "entry", text, nil); err != nil {
		return nil, err
	}
	e.photo, err = e.conn.PgConn().Prepare(ctx, "photo", photoByID(m.Schema(0)+"."), nil)
	return e, err
}

// selects is [selects] in shard 0.
func (e *entered) selects(ctx context.Context, worker, i int) (ignored bool, err error) {
	var batch pgconn.Batch
	batch.ExecStatement(e.entry, e.arguments, nil, nil)
	batch.ExecStatement(e.photo, [][]byte{[]byte(strconv.Itoa(1 + (7*worker+i)%photosPerShard))}, nil, nil)
	results, err := e.conn.PgConn().ExecBatch(ctx, &batch).ReadAll()
	switch {
	case err != nil:
		return false, err
	case len(results) != 2 || len(results[1].Rows) != 1:
		return false, errors.New("expected a row of each of two statements")
	case string(results[1].Rows[0][0]) != "0":
		return false, errWrongShard
	}
	return false, nil
}
