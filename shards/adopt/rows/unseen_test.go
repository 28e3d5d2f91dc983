package rows_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// TestUnseenCopy holds that no statement under REPEATABLE READ leaves the copy of a row that its snapshot does not have as it is: a DELETE
// would delete nothing there, and the row would come back.
func TestUnseenCopy(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	statements := []string{ // each of another user of shard 1
		"delete from tags where photo_id = 7", "delete from photos where id = 11", "delete from albums where id = 16", "update photos set id = 4000 where id = 19",
		"update tags set tag = 'other' where photo_id = 23", "update photos set title = 'other' where id = 27", "delete from users where id = 33",
		"update albums set id = 4000 where id = 36",
	}
	var sessions []*pgx.Conn
	for range statements {
		sessions = append(sessions, b.in(1))
	}
	cfg, tables := b.config(), 0
	cfg.Parallel = 1
	report := cfg.Report
	cfg.Report = func(e rows.Event) {
		report(e)
		if e.Kind != rows.Copied {
			return
		}
		tables++
		for i, statement := range statements {
			switch tables {
			case 1: // users
				if _, err := pgtest.Run(t.Context(), sessions[i], "begin isolation level repeatable read; select 1"); err != nil {
					t.Error(err)
				}
			case 6:
				_, err := pgtest.Run(t.Context(), sessions[i], statement)
				if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != "40001" {
					t.Errorf("%s: got %v, expected a serialization error", statement, err)
				}
				if _, err := pgtest.Run(t.Context(), sessions[i], "commit"); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if _, err := rows.Tables(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}
