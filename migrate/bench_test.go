package migrate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

const benchShards = 2048

// durableHosts returns empty databases on a server that puts on disk what it commits.
func durableHosts(b *testing.B) func() []shards.Host {
	b.Helper()
	cfg := shardtest.ServerConfig()
	cfg.Settings = nil
	server, err := localpg.Start(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	made := 0
	return func() []shards.Host {
		made++
		dsn, err := server.CreateDatabase(b.Context(), fmt.Sprintf("bench_%d", made))
		if err != nil {
			b.Fatal(err)
		}
		return []shards.Host{{Name: "pg-a", DSN: dsn}}
	}
}

func perShard(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed())/float64(time.Millisecond)/float64(b.N*benchShards), "ms/shard")
}

// BenchmarkUp takes 2048 shards through two files: two tables, a foreign key and two indexes.
func BenchmarkUp(b *testing.B) {
	hosts := durableHosts(b)
	for _, workers := range []int{1, 2, 4} {
		for _, files := range []string{"plain", "templates"} {
			b.Run(fmt.Sprintf("workers=%d/%s", workers, files), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					c := setupOn(b, benchShards, hosts(), "001_users.sql", users, "002_photos.sql", photos)
					if files == "templates" {
						c.cfg.Files = templated
					}
					c.cfg.PerHost = workers
					b.StartTimer()
					c.up()
				}
				perShard(b)
			})
		}
	}
}

var templated = files("001_users.sql", "-- {{.schema}}\n"+users, "002_photos.sql", photos)

// BenchmarkFloor is the same in one loop on the server, a transaction for each shard and file: as
// fast as one session can be.
func BenchmarkFloor(b *testing.B) {
	hosts := durableHosts(b)
	for b.Loop() {
		b.StopTimer()
		c := setupOn(b, benchShards, hosts())
		b.StartTimer()
		c.execHost(c.m.Hosts()[0], `do $do$ begin
			set synchronous_commit = off;
			for n in 0 .. `+fmt.Sprint(benchShards-1)+` loop
				perform set_config('search_path', 'shard_' || lpad(n::text, 5, '0'), false);
				execute $$`+users+`$$; commit;
				execute $$`+up(photos)+`$$; commit;
			end loop;
		end $do$`)
	}
	perShard(b)
}

func up(file string) string {
	return file[:len(file)-len("---- create above / drop below ----\ndrop table photos;\n")]
}

// BenchmarkStatus asks for the versions of 2048 shards, each time in a new session.
func BenchmarkStatus(b *testing.B) {
	c := setupOn(b, benchShards, durableHosts(b)(), "001_users.sql", users)
	c.up()
	for b.Loop() {
		if _, err := migrate.Status(b.Context(), c.cfg); err != nil {
			b.Fatal(err)
		}
	}
}
