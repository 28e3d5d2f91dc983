package prove_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate"
)

func (c *cluster) kill(name string) {
	c.t.Helper()
	if err := c.servers[name].Kill(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) restart(name string) {
	c.t.Helper()
	if err := c.servers[name].Restart(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}

// fill makes a table that is larger than a segment of the WAL.
func (c *cluster) fill(host string) {
	c.t.Helper()
	c.exec(host, `set search_path = shard_00001, pg_temp; create table large (n int primary key, what text); alter table large alter what set storage plain;
		insert into large select n, repeat('x', 7000) from generate_series(1, 2500) n`)
}

// migrateUp runs one more migration. Shard 1 is left alone unless it is quiet.
func (c *cluster) migrateUp(quiet bool) {
	c.t.Helper()
	if !quiet {
		*c.files++
	}
	files := maps.Clone(migrations)
	for n := 2; n < *c.files+2; n++ {
		files[fmt.Sprintf("%03d_more.sql", n)] = &fstest.MapFile{Data: fmt.Appendf(nil, `alter table events add more_%d int;`, n)}
	}
	report, err := migrate.Up(c.t.Context(), migrate.Config{Map: c.load(c.direct), Files: files})
	switch {
	case quiet && err != nil:
		c.t.Errorf("migrate up after the move: %v", err)
	case !quiet && (!errors.Is(err, migrate.ErrMoving) || report.Done.String() != "0,2-3"):
		c.t.Errorf("migrate up during the move: done %s, %v", report.Done, err)
	}
}

// holder is a session that has left a transaction open.
type holder struct{ conn *pgx.Conn }

func (c *cluster) leaveOpen(host string) {
	c.t.Helper()
	conn, err := c.connect(host)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.holder.conn = conn
	if _, err := conn.Exec(c.t.Context(), `begin; select from shard_00001.events where n = 1 for update`); err != nil {
		c.t.Error(err)
	}
}

func (h *holder) end() { _ = h.conn.Close(context.Background()) }
