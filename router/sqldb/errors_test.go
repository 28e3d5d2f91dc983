package sqldb_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// Errors are those of the shard, wherever they come up.
func TestErrors(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, modes[0], 1)
	db := b.open(t, 13)
	ways := map[string]func() error{
		"Exec": func() error { _, err := db.ExecContext(ctx, `select 1 / $1::int`, 0); return err },
		"QueryRow": func() error {
			return db.QueryRowContext(ctx, `select 1 / $1::int`, 0).Scan(new(int))
		},
		"the second row": func() error {
			rows, err := db.QueryContext(ctx, `select 1 / n from generate_series(1, 0, -1) n`)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		},
		"Begin": func() error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, `select 1 / $1::int`, 0)
			return errors.Join(err, tx.Rollback())
		},
	}
	for name, way := range ways {
		err := way()
		var pgErr *pgconn.PgError
		var shardErr *shards.ShardError
		if !errors.As(err, &pgErr) || pgErr.Code != "22012" || !errors.As(err, &shardErr) || shardErr.Shard != 13 {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.isFree(ctx, t)

	_, err := db.ExecContext(ctx, `insert into photos (id, owner) values ($1, $2)`, 1, 13)
	text, jsonErr := json.Marshal(err)
	want := `{"Severity":"ERROR","Code":"23505","Message":"shard 13 (shard_00013 on pg-a): ERROR: duplicate key value violates unique constraint \"photos_pkey\" (SQLSTATE 23505)"}`
	if string(text) != want || jsonErr != nil {
		t.Errorf("as JSON: %s, %v", text, jsonErr)
	}

	ended, end := context.WithCancel(ctx)
	end()
	if err := db.PingContext(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := db.QueryRowContext(ctx, `select 1 where false`).Scan(new(int)); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("got %v", err)
	}
	result, err := db.ExecContext(ctx, `update photos set title = $1`, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := result.LastInsertId(); err == nil {
		t.Error("Postgres has no LastInsertId")
	}
}
