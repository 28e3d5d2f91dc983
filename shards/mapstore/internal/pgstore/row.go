package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
	"github.com/kiloshard/kiloshard/sql"
	"github.com/kiloshard/kiloshard/sql/special"
)

// row is a version in the table. Version is 0 for none.
type row struct {
	Version  int
	Document string
	At       time.Time
	By       string
	Why      string
	Attempt  string // identifies the change that made it
	Role     string
}

const columns = "version, document, made_at, made_by, why, attempt, role::text"

// version returns the version of a row, nil for none.
func (s *Store) version(r row) *backend.Version {
	if r.Version == 0 {
		return nil
	}
	return &backend.Version{
		Number: r.Version, Document: []byte(r.Document), At: r.At.UTC(), By: r.By, Why: r.Why, Role: r.Role,
		Name: fmt.Sprintf("version %d of the map in %s", r.Version, s.name),
	}
}

// latest queries the newest version of a cluster.
const latest = `select ` + columns + ` from kiloshard.maps where cluster = $1 order by version desc limit 1`

// first returns the first of some rows, the zero row if there is none.
func first(rows []row, err error) (row, error) {
	if err != nil || len(rows) == 0 {
		return row{}, err
	}
	return rows[0], nil
}

// read reads rows with a connection of the pool.
func (s *Store) read(ctx context.Context, query string, args ...any) (rows []row, err error) {
	err = s.withConn(ctx, func(conn *pgxpool.Conn) error {
		rows, err = readFrom(ctx, conn.Conn(), query, args...)
		return err
	})
	return rows, err
}

// readTwice is read, and reads again if an idle connection turns out to be broken.
func (s *Store) readTwice(ctx context.Context, query string, args ...any) ([]row, error) {
	rows, err := s.read(ctx, query, args...)
	if err != nil && isBroken(err) && ctx.Err() == nil {
		s.pool.Reset()
		return s.read(ctx, query, args...)
	}
	return rows, err
}

var errNotPlain = errors.New("kiloshard.maps was made by somebody else: expected a plain table, as the first change of the map makes it")

// readFrom returns the rows of a query of the table, none if there is no table. In the same transaction it refuses a
// table that is not safe to read, such as a view.
func readFrom(ctx context.Context, conn *pgx.Conn, query string, args ...any) (all []row, err error) {
	var batch pgx.Batch
	batch.Queue(special.Refuse("kiloshard.maps"))
	batch.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		return err
	})
	switch err := conn.SendBatch(ctx, &batch).Close(); {
	case isMissing(err):
		return nil, nil
	case sqlState(err) == sql.Refused || sqlState(err) == "42809": // wrong_object_type
		return nil, errNotPlain
	default:
		return all, err
	}
}
