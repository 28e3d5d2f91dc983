package objects_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/objects"
)

// An update that fails, wherever it does, changes nothing and leaves nothing open; the next one goes on.
func TestUpdatesThatFail(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	boards := open(t, r, "board", objects.Options[Board]{})
	board, err := boards.Create(ctx, Board{"Dogs"})
	if err != nil {
		t.Fatal(err)
	}
	place, err := objects.Locate(r, board.ID)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string) {
		t.Helper()
		if _, err := place.Shard.Exec(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	update := func(name string, meanwhile func() error) error {
		_, err := boards.Update(ctx, board.ID, func(b *Board) error { b.Name = name; return meanwhile() })
		return err
	}
	nothing := func() error { return nil }
	unchanged := func(why string) {
		t.Helper()
		if got, err := boards.Get(ctx, board.ID); err != nil || got.Fields.Name != "Dogs" {
			t.Errorf("%s: got %v, %v", why, got.Fields, err)
		}
	}

	// At its COMMIT, which is sent with the last statement.
	exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'no cats'; end $$`)
	exec(`create constraint trigger refuse after update on boards deferrable initially deferred for each row execute function refuse()`)
	var refused *pgconn.PgError
	if err := update("Cats", nothing); !errors.As(err, &refused) || refused.Message != "no cats" || errors.Is(err, router.ErrOutcomeUnknown) {
		t.Errorf("got %v, expected the trigger's error", err)
	}
	unchanged("a trigger that is deferred")
	exec(`drop trigger refuse on boards`)

	// In between.
	mistake := errors.New("a mistake")
	if err := update("Cats", func() error { return mistake }); !errors.Is(err, mistake) {
		t.Errorf("got %v, expected the mistake", err)
	}
	unchanged("an error of change")

	// With its connection.
	conn, err := pgx.Connect(ctx, place.Shard.Host().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	end := func() error {
		_, err := conn.Exec(ctx, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
		return err
	}
	if err := update("Cats", end); err == nil {
		t.Error("an update has lost its connection, and there is no error")
	}
	unchanged("a connection that is lost in between")

	// One that was lost before it has begun is made good.
	for range 3 {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := update("Dogs", nothing); err != nil {
			t.Errorf("after all connections were lost: %v", err)
		}
	}
	exec(`drop table boards`)
	if err := update("Cats", nothing); !errors.As(err, &refused) || refused.Code != "42P01" {
		t.Errorf("got %v, expected that there is no table", err)
	}
	for _, h := range r.Stats() {
		if h.Conns != h.Idle {
			t.Errorf("%s: %d connections of which %d are idle", h.Host, h.Conns, h.Idle)
		}
	}
}
