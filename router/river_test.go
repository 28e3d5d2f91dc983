package router_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// riverMigrations returns the migrations of River, a job queue, as tern files.
func riverMigrations() (fs.FS, error) {
	const line = "main"
	source := riverpgxv5.New(nil).GetMigrationFS(line)
	ups, err := fs.Glob(source, path.Join("migration", line, "*.up.sql"))
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	for _, name := range ups {
		up, err := fs.ReadFile(source, name)
		if err != nil {
			return nil, err
		}
		name = strings.TrimSuffix(name, ".up.sql")
		down, err := fs.ReadFile(source, name+".down.sql")
		if err != nil {
			return nil, err
		}
		sql := string(up) + "\n---- create above / drop below ----\n" + string(down)
		sql = strings.ReplaceAll(sql, "/* TEMPLATE: schema */", "") // River puts a schema there: ours is in the search_path
		files[path.Base(name)+".sql"] = &fstest.MapFile{Data: []byte(sql)}
	}
	return files, nil
}

// Thumbnail is a job: to make one for a photo.
type Thumbnail struct {
	Photo int64 `json:"photo"`
}

func (Thumbnail) Kind() string { return "thumbnail" }

// thumbnailer works the jobs of one shard, in which it finds the photo too.
type thumbnailer struct {
	river.WorkerDefaults[Thumbnail]
	pool *pgxpool.Pool
	done chan<- string
}

func (w *thumbnailer) Work(ctx context.Context, job *river.Job[Thumbnail]) error {
	var title string
	if err := w.pool.QueryRow(ctx, `select title from photos where id = $1`, job.Args.Photo).Scan(&title); err != nil {
		return err
	}
	w.done <- title
	return nil
}

// openQueue works the jobs of a shard until the queue is closed. The pool is the shard's own, for River listens on one of
// its connections. Each shard has three connections, so that not every process should work the jobs of every shard.
func openQueue(ctx context.Context, s router.Shard, done chan<- string) (client *river.Client[pgx.Tx], closeQueue func() error, err error) {
	config := s.PoolConfig()
	config.MaxConns = 3
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &thumbnailer{pool: pool, done: done})
	client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Workers: workers, Logger: slog.New(slog.DiscardHandler), FetchPollInterval: 100 * time.Millisecond,
	})
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return client, func() error {
		defer pool.Close()
		return client.Stop(context.WithoutCancel(ctx))
	}, nil
}

// River's job queue in the schema of each shard: migrated by migrate up, filled in the shard's own transactions, so that
// there is a job if and only if there is the photo, and worked by pools of the shards' own.
func ExampleShard_PoolConfig() {
	ctx := context.Background()
	r := exampleRouter(ctx)
	defer r.Close()

	files, err := riverMigrations()
	if err != nil {
		panic(err)
	}
	if _, err := migrate.Up(ctx, migrate.Config{Map: r.Map(), Files: files, Shards: shards.SetOf(7)}); err != nil {
		panic(err)
	}
	shard, err := r.ForKey(ctx, shards.NumberKey(7))
	if err != nil {
		panic(err)
	}
	done := make(chan string)
	jobs, closeQueue, err := openQueue(ctx, shard, done)
	if err != nil {
		panic(err)
	}
	err = shard.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		var photo int64
		const query = `insert into photos values (next_id(), $1, $2) returning id`
		if err := tx.QueryRow(ctx, query, 7, "a bridge").Scan(&photo); err != nil {
			return err
		}
		_, err := jobs.InsertTx(ctx, tx, Thumbnail{photo}, nil)
		return err
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("made the thumbnail of", <-done)
	if err := closeQueue(); err != nil {
		panic(err)
	}
	// Output: made the thumbnail of a bridge
}

// The queues of two shards of a host know nothing of each other, and what a transaction that is rolled back has put into
// one is not in it.
func TestJobsInTwoShards(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	files, err := riverMigrations()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.Up(ctx, migrate.Config{Map: b.Map(), Files: files, Shards: shards.SetOf(7, 8)}); err != nil {
		t.Fatal(err)
	}
	rolledBack := errors.New("rolled back")
	for _, n := range []int{7, 8} {
		s := b.shard(t, n)
		done := make(chan string, 10)
		jobs, closeQueue, err := openQueue(ctx, s, done)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := closeQueue(); err != nil {
				t.Error(err)
			}
		})
		for _, end := range []error{rolledBack, nil} {
			err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
				if _, err := jobs.InsertManyTx(ctx, tx, []river.InsertManyParams{{Args: Thumbnail{1}}, {Args: Thumbnail{1}}}); err != nil {
					return err
				}
				return end
			})
			if !errors.Is(err, end) {
				t.Fatal(err)
			}
		}
		for range 2 {
			select {
			case title := <-done:
				if want := fmt.Sprintf("of shard %d", n); title != want {
					t.Errorf("shard %d: got %q, want %q", n, title, want)
				}
			case <-ctx.Done():
				t.Fatal("a job was not worked")
			}
		}
	}
	for _, n := range []int{7, 8} {
		const query = `select count(*) from river_job`
		var count int
		if err := b.shard(t, n).QueryRow(ctx, query).Scan(&count); err != nil || count != 2 {
			t.Errorf("shard %d: %d jobs, %v", n, count, err)
		}
	}
}
