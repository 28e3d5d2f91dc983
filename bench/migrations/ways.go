package migrations

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	tern "github.com/jackc/tern/v2/migrate"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// The names of the ways to migrate.
const (
	wayLoop  = "loop inside the servers"
	wayLoops = "as many such loops as sessions"
	wayUp    = "kiloshard migrate up"
	wayGoose = "goose-style loop"
	wayTern  = "tern in a loop"
)

// way migrates the shards of a set. It returns when its commits are on disk.
type way struct {
	name string
	run  func(ctx context.Context, m *shards.Map, set shards.Set, workers int) error
}

// otherWays returns all ways but Up.
func otherWays() []way {
	return []way{
		{wayLoop, func(ctx context.Context, m *shards.Map, set shards.Set, _ int) error { return byLoops(ctx, m, set, 1) }},
		{wayLoops, byLoops},
		{wayGoose, byGooseStyle},
		{wayTern, byTern},
	}
}

// Every way creates a table and an index in every shard. Tern's version table exists already, as in any shard that was
// migrated before.
const (
	versionTable = "create table schema_version(version int4 not null primary key); insert into schema_version values (0)"
	photosIndex  = "create index photos_owner on photos (owner)"
)

// migration is the directory of migrations.
var migration = fstest.MapFS{"001_photos.sql": {Data: []byte(server.PhotosTable + ";\n" + photosIndex + ";\n")}}

// byTern calls tern as documented, one shard after the other.
func byTern(ctx context.Context, m *shards.Map, set shards.Set, workers int) error {
	return inSessions(ctx, m, set, workers, func(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
		if _, err := conn.Exec(ctx, "set search_path = "+m.SearchPath(n)); err != nil { // tern resets it after each file
			return err
		}
		migrator, err := tern.NewMigrator(ctx, conn, m.Schema(n)+".schema_version")
		if err != nil {
			return err
		}
		if err := migrator.LoadMigrations(migration); err != nil {
			return err
		}
		return migrator.Migrate(ctx)
	})
}

// byGooseStyle uses a transaction for each shard and a round trip for each statement.
func byGooseStyle(ctx context.Context, m *shards.Map, set shards.Set, workers int) error {
	return inSessions(ctx, m, set, workers, func(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
		for _, statement := range []string{
			"begin",
			"set local search_path = " + m.SearchPath(n),
			"select coalesce(max(version), 0) from schema_version",
			server.PhotosTable,
			photosIndex,
			"update schema_version set version = 1",
			"commit",
		} {
			if _, err := conn.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
				return err
			}
		}
		return nil
	})
}

// inSessions runs fn for each shard of a set, in the given number of sessions per host.
func inSessions(ctx context.Context, m *shards.Map, set shards.Set, workers int, fn func(context.Context, *pgx.Conn, shards.Number) error) error {
	_, err := fanout.Run(ctx, fanout.Config[*pgx.Conn]{
		Map: m, PerHost: workers,
		Open: func(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
			return pgx.Connect(ctx, host.ConnString())
		},
		Close: func(ctx context.Context, conn *pgx.Conn) { _ = conn.Close(ctx) },
		Do: func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) []error {
			errs := make([]error, len(batch))
			for i, n := range batch {
				errs[i] = fn(ctx, conn, n)
			}
			return errs
		},
	}, fanout.Plan(m, set))
	return err
}

// onDisk commits a record and waits for the disk, which flushes all earlier commits.
const onDisk = "set synchronous_commit = on; select pg_logical_emit_message(true, 'kiloshard', 'migrated')"

// byLoops migrates the shards of every host in loops inside the server, each with an equal part of them.
func byLoops(ctx context.Context, m *shards.Map, set shards.Set, loops int) error {
	return inLoops(ctx, m, set, loops, server.PhotosTable, photosIndex+"; update schema_version set version = 1")
}

// inLoops runs statements in the shards of every host, in loops inside the server which commit after 64 shards.
func inLoops(ctx context.Context, m *shards.Map, set shards.Set, loops int, statements ...string) error {
	execute := ""
	for _, statement := range statements {
		execute += "execute $sql$" + statement + "$sql$;\n"
	}
	plan := fanout.Plan(m, set)
	return harness.Together(len(plan), func(i int) error {
		host, numbers := plan[i].Host, plan[i].Shards
		err := harness.Together(loops, func(k int) error {
			part := numbers[k*len(numbers)/loops : (k+1)*len(numbers)/loops]
			if len(part) == 0 {
				return nil
			}
			return server.Exec(ctx, host, fmt.Sprintf(`
				do $loop$ begin
					set synchronous_commit = off;
					for n in %d .. %d loop
						perform set_config('search_path', 'shard_' || lpad(n::text, 5, '0'), false);
						%s
						if n %% 64 = 63 then commit; end if;
					end loop;
				end $loop$`, part[0], part[len(part)-1], execute))
		})
		return errors.Join(err, server.Exec(ctx, host, onDisk))
	})
}

// partOfEach returns n shards of each host, from its i-th on.
func partOfEach(m *shards.Map, i, n int) shards.Set {
	var numbers []shards.Number
	for _, host := range m.Hosts() {
		numbers = append(numbers, m.NumbersOn(host.Name)[i:i+n]...)
	}
	return shards.SetOf(numbers...)
}
