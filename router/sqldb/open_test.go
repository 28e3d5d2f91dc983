package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router/sqldb"
)

// Every way of asking must be answered by the shard of the handle. The enum has another OID in each.
var questions = []struct {
	name string
	ask  func(ctx context.Context, db *sql.DB) (owner int64, err error)
}{
	{"QueryRow", func(ctx context.Context, db *sql.DB) (owner int64, err error) {
		err = db.QueryRowContext(ctx, `select owner from photos where id = $1`, 1).Scan(&owner)
		return owner, err
	}},
	{"enum", func(ctx context.Context, db *sql.DB) (owner int64, err error) {
		var seenBy string
		err = db.QueryRowContext(ctx, `select owner, seen_by from photos where id = $1 and seen_by = $2`, 1, "private").Scan(&owner, &seenBy)
		if err == nil && seenBy != "private" {
			err = fmt.Errorf("seen by %q", seenBy)
		}
		return owner, err
	}},
	{"Exec", func(ctx context.Context, db *sql.DB) (owner int64, err error) {
		result, err := db.ExecContext(ctx, `update photos set title = $1 where id = $2`, "seen", 1)
		if err != nil {
			return 0, err
		}
		if rows, err := result.RowsAffected(); rows != 1 || err != nil {
			return 0, fmt.Errorf("%d rows: %w", rows, err)
		}
		err = db.QueryRowContext(ctx, `select owner from photos`).Scan(&owner)
		return owner, err
	}},
	{"Exec of several statements", func(ctx context.Context, db *sql.DB) (owner int64, err error) {
		if _, err := db.ExecContext(ctx, `select 1; update photos set title = 'seen'`); err != nil {
			return 0, err
		}
		err = db.QueryRowContext(ctx, `update photos set title = 'first' where title = 'seen' returning owner`).Scan(&owner)
		return owner, err
	}},
	{"prepared statement", func(ctx context.Context, db *sql.DB) (owner int64, err error) {
		stmt, err := db.PrepareContext(ctx, `select owner from photos where id = $1`)
		if err != nil {
			return 0, err
		}
		for range 2 {
			err = errors.Join(err, stmt.QueryRowContext(ctx, 1).Scan(&owner))
		}
		return owner, errors.Join(err, stmt.Close())
	}},
	{"transaction", func(ctx context.Context, db *sql.DB) (owner int64, err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `update photos set title = $1`, "seen"); err != nil {
			return 0, err
		}
		stmt, err := tx.PrepareContext(ctx, `select owner from photos where id = $1`)
		if err != nil {
			return 0, err
		}
		return owner, errors.Join(stmt.QueryRowContext(ctx, 1).Scan(&owner), stmt.Close(), tx.Commit())
	}},
	{"a connection", func(ctx context.Context, db *sql.DB) (owner int64, err error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return 0, err
		}
		err = errors.Join(conn.PingContext(ctx), conn.QueryRowContext(ctx, `select owner from photos`).Scan(&owner))
		return owner, errors.Join(err, conn.Close())
	}},
}

// The handles of all shards share one connection to each host, which none of them holds while it is idle.
func TestHandlesShareConnections(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			b, ctx := setup(t, mode, 1)
			handles := make([]*sql.DB, 16) // of shards 0 to 7 and 16 to 23
			for i := range handles {
				handles[i] = b.open(t, i%8+i/8*16)
			}
			var wait sync.WaitGroup
			locks := make([]sync.Mutex, len(handles)) // titles are seen by the others
			for w := range 8 {
				wait.Go(func() {
					for i := range 2 * len(handles) {
						n := (i*5 + w) % len(handles)
						q := questions[(w+i)%len(questions)]
						locks[n].Lock()
						owner, err := q.ask(ctx, handles[n])
						locks[n].Unlock()
						if want := int64(n%8 + n/8*16); err != nil || owner != want {
							t.Errorf("%s: shard %d was answered by shard %d, %v", q.name, want, owner, err)
							return
						}
					}
				})
			}
			wait.Wait()
			b.isFree(ctx, t)
		})
	}
}

// A table that changes between two calls is nothing that a caller would see.
func TestTableChangesBetweenCalls(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, modes[0], 1)
	db := b.open(t, 8)
	stmt, err := db.PrepareContext(ctx, `select * from changing where n = $1`)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	ask := func() (columns []string, err error) {
		rows, err := stmt.QueryContext(ctx, "1")
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		if columns, err = rows.Columns(); !rows.Next() {
			err = errors.Join(err, sql.ErrNoRows, rows.Err())
		}
		return columns, err
	}
	for _, change := range []string{
		`drop table if exists changing; create table changing (n int); insert into changing values (1)`,
		`alter table changing add column m int`,
		`alter table changing alter column n type text`,
	} {
		if _, err := db.ExecContext(ctx, change); err != nil {
			t.Fatal(err)
		}
		columns, err := ask()
		if err != nil || !slices.Contains(columns, "n") || slices.Contains(columns, "m") == strings.HasPrefix(change, "drop") {
			t.Errorf("after %s: %q, %v", change, columns, err)
		}
	}
}

// A handle has nothing that would keep the router from closing, and nothing that would go on without it.
func TestRouterClosesFirst(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, modes[0], 1)
	db := b.open(t, 9)
	if err := db.PingContext(ctx); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := db.PingContext(ctx); err == nil {
		t.Error("a ping went through a router that is closed")
	}
}

func TestNothingToOpenByName(t *testing.T) {
	t.Parallel()
	b, _ := setup(t, modes[0], 1)
	if conn, err := b.open(t, 9).Driver().Open("shard_00009"); conn != nil || err == nil || !strings.Contains(err.Error(), "sqldb.Open") {
		t.Errorf("got %v, %v", conn, err)
	}
	if err := sqldb.Open(b.shard(t, 9)).Close(); err != nil {
		t.Error(err)
	}
}
