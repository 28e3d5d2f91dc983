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

// enteredByHand is a connection that sends a router's entry before a statement, in one message, and does nothing else that a router
// does: what it is slower by than a plain connection, the server takes for the entry.
type enteredByHand struct {
	conn         *pgx.Conn
	entry, photo *pgconn.StatementDescription
	arguments    [][]byte // of the entry
}

// openEntered takes the entry of reads from a session of a router.
func openEntered(ctx context.Context, r *router.Router, m *shards.Map) (_ *enteredByHand, err error) {
	shard, err := forKey(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	var query, path, oid string
	const find = `SELECT current_setting('search_path'), $1::text::regnamespace::oid::text, statement FROM pg_prepared_statements WHERE name = 'kiloshard_read_entry'`
	if err := shard.QueryRow(ctx, find, m.Schema(0)).Scan(&path, &oid, &query); err != nil {
		return nil, fmt.Errorf("the entry of a router's reads: %w", err)
	}
	e := &enteredByHand{arguments: [][]byte{[]byte(path), []byte(m.Schema(0)), {}, []byte(oid)}}
	if e.conn, err = pgx.Connect(ctx, dsn.With(m.Hosts()[0].ConnString(), "search_path", "")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.entry, err = e.conn.PgConn().Prepare(ctx, "entry", query, nil); err != nil {
		return nil, err
	}
	e.photo, err = e.conn.PgConn().Prepare(ctx, "photo", photoByID(m.Schema(0)+"."), nil)
	return e, err
}

func (e *enteredByHand) close() {
	_ = e.conn.Close(context.Background()) // all has been read
}

// selects is [selects] of shard 0.
func (e *enteredByHand) selects(ctx context.Context, worker, i int) (apart bool, err error) {
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
