package prove_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// toxics are what a network may do to the bytes of one direction.
var toxics = []string{
	`{"name": "now", "stream": "%s", "type": "latency", "attributes": {"latency": 20, "jitter": 20}}`,
	`{"name": "now", "stream": "%s", "type": "bandwidth", "attributes": {"rate": 20}}`, // a slow drip, 20 KiB/s; toxiproxy's slicer leaves goroutines behind
	`{"name": "now", "stream": "%s", "type": "timeout"}`,                               // half-dead: one direction passes nothing
	`{"name": "now", "stream": "%s", "type": "reset_peer", "attributes": {"timeout": 0}}`,
}

// chaos is a host whose sessions, network and callers misbehave, and what callers were told.
type chaos struct {
	r   *router.Router
	dsn string // past the proxy
	ids atomic.Int64

	mu      sync.Mutex
	written map[int64]error // what became of each write
	reads   atomic.Int64    // that were answered
}

// TestChaos has callers with random deadlines, slow readers, locks, answers of up to 50 MB, pg_terminate_backend and a bad
// network at the same time. A write that was acknowledged is there once, one that is safe to retry is not, and a
// read that is answered is right. In the end no session is left, and no goroutine, which TestMain looks for.
func TestChaos(t *testing.T) {
	t.Parallel()
	server := start(t)
	proxy, far := startProxy(t, server)
	var sql strings.Builder
	for n := range shardCount { // no key: a row that is written twice is there twice
		fmt.Fprintf(&sql, `create table shard_%05[1]d.chaos (id bigint, shard int);
create function shard_%05[1]d.record(new bigint) returns int language sql as 'insert into shard_%05[1]d.chaos values (new, %[1]d) returning shard';
create view shard_%05[1]d.draws as select shard_%05[1]d.record(0) as shard;`, n)
	}
	do(t, server.DSN(database), sql.String())
	c := &chaos{dsn: server.DSN(database), written: map[int64]error{}}
	c.r = open(t, router.Config{
		Failover: router.Failover{FailAfter: failSoon, NoWait: true},
		Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
			cfg.MaxConns = 6
			cfg.ConnConfig.RuntimeParams["application_name"] = "chaos"
			return nil
		},
	}, far)
	troubled, calm := context.WithCancel(t.Context())
	defer calm()
	var troubles sync.WaitGroup
	troubles.Go(func() { c.endSessions(t, troubled) })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var callers sync.WaitGroup
	ended := make(chan struct{})
	for i, call := range []func(context.Context, *rand.Rand, router.Shard) error{
		c.write, c.write, c.write, c.log, c.log, c.echo, c.echo, c.echo, c.echo, c.hidden, c.large, c.large, c.slow, c.lock, c.lock,
	} {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for {
				select {
				case <-ended:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random.ExpFloat64()*300)*time.Millisecond)
				err := call(ctx, random, shard(t, c.r, random.IntN(shardCount)))
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i, stream := range []string{"downstream", "upstream"} {
		for j, toxic := range toxics {
			if (i+j)%2 == 1 && !pgtest.Full() {
				continue // each in one direction
			}
			c.answers(t, 50)
			t.Logf("%d reads; "+toxic, c.reads.Load(), stream)
			if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(toxic, stream))); err != nil {
				t.Error(err)
			}
			time.Sleep(700 * time.Millisecond) // how long the network is bad: some calls may still get through, or none
			if err := proxy.Toxics.RemoveToxic(t.Context(), "now"); err != nil {
				t.Error(err)
			}
		}
	}
	c.answers(t, 50)
	calm()
	troubles.Wait()
	close(ended)
	callers.Wait()
	c.verify(t)
	c.r.Close()
	eventually(t, "no session is left", func() bool {
		return ask[int](t, c.dsn, `select count(*)::int from pg_stat_activity where application_name = 'chaos'`) == 0
	})
}

// answers waits until so many more reads were answered, and some writes.
func (c *chaos) answers(t *testing.T, count int64) {
	t.Helper()
	from, writes := c.reads.Load(), c.ids.Load()
	eventually(t, "calls get through", func() bool { return t.Failed() || c.reads.Load() >= from+count && c.ids.Load() > writes+20 })
}

// endSessions ends one of the router's sessions now and then.
func (c *chaos) endSessions(t *testing.T, ctx context.Context) {
	conn, err := pgx.Connect(context.Background(), c.dsn)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	const query = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'chaos' order by random() limit 1`
	for ctx.Err() == nil {
		if _, err := conn.Exec(context.Background(), query); err != nil {
			t.Error(err)
			return
		}
		time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond)
	}
}

// write inserts a row of its own, or two in a transaction.
func (c *chaos) write(ctx context.Context, random *rand.Rand, s router.Shard) error {
	id := c.ids.Add(1)
	var err error
	const insert = `insert into chaos values ($1, $2)`
	switch random.IntN(3) {
	case 0:
		err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insert, id, int(s.Number()))
			return err
		})
	case 1:
		var batch pgx.Batch
		batch.Queue(insert, id, int(s.Number()))
		batch.Queue(`select 1`)
		err = s.SendBatch(ctx, &batch).Close()
	default:
		_, err = s.Exec(ctx, insert, id, int(s.Number()))
	}
	return c.wrote(id, err)
}

// log writes by a function, which no look at the statement tells.
func (c *chaos) log(ctx context.Context, _ *rand.Rand, s router.Shard) error {
	id := c.ids.Add(1)
	var shard int
	err := s.QueryRow(ctx, `select record($1)`, id).Scan(&shard)
	if err == nil && shard != int(s.Number()) {
		return fmt.Errorf("shard %d was answered by shard %d", s.Number(), shard)
	}
	return c.wrote(id, err)
}

func (c *chaos) wrote(id int64, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[id] = err
	return nil
}

// hidden writes, by a function behind a view, a row that counts for nothing: sent with others as a read it is refused.
func (c *chaos) hidden(ctx context.Context, _ *rand.Rand, s router.Shard) error {
	var shard int
	return c.read(s, s.QueryRow(ctx, `select shard from draws`).Scan(&shard), shard, int(s.Number()))
}

// echo reads its own argument and the shard's number.
func (c *chaos) echo(ctx context.Context, random *rand.Rand, s router.Shard) error {
	id, got := random.Int64(), int64(0)
	var schema string
	err := s.QueryRow(ctx, `select current_schema::text, $1::int8 from ledger where id = 0`, id).Scan(&schema, &got)
	if err == nil && schema != s.Schema() {
		return fmt.Errorf("shard %d was answered by %s", s.Number(), schema)
	}
	return c.read(s, err, got, id)
}

// large reads up to 16 MB, at times 50 MB, and now and then goes away early.
func (c *chaos) large(ctx context.Context, random *rand.Rand, s router.Shard) error {
	rows, size := 1<<random.IntN(12), 1<<random.IntN(13)
	switch random.IntN(12) {
	case 0, 1, 2:
		rows = 0
	case 3:
		rows, size = 6400, 8<<10
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	answer, err := s.Query(ctx, `select i, repeat($2, $3) from generate_series(1, $1) i, ledger where id = 0`, rows, "x", size)
	if err != nil {
		return c.read(s, err, 0, 0)
	}
	defer answer.Close()
	leave := random.IntN(2*rows + 1)
	read := 0
	for ; answer.Next(); read++ {
		if read == leave {
			return nil
		}
		var i int
		var text string
		if err := answer.Scan(&i, &text); err != nil || i != read+1 || len(text) != size {
			return fmt.Errorf("row %d of %d: got row %d with %d bytes of %d, %w", read+1, rows, i, len(text), size, err)
		}
	}
	return c.read(s, answer.Err(), read, rows)
}

// slow takes its time with each row.
func (c *chaos) slow(ctx context.Context, random *rand.Rand, s router.Shard) error {
	rows, err := s.Query(ctx, `select i from generate_series(1, 20) i, ledger where id = 0`)
	if err != nil {
		return c.read(s, err, 0, 0)
	}
	defer rows.Close()
	read := 0
	for rows.Next() {
		read++
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
	}
	return c.read(s, rows.Err(), read, 20)
}

// lock holds a row for a while, or waits for it.
func (c *chaos) lock(ctx context.Context, random *rand.Rand, s router.Shard) error {
	return c.read(s, s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from ledger where id = 0 for update`); err != nil {
			return err
		}
		if random.IntN(2) == 0 {
			if _, err := tx.Exec(ctx, `lock table ledger in access exclusive mode`); err != nil {
				return err
			}
		}
		time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
		return nil
	}), 0, 0)
}

// read takes note of a read that was answered. Others may fail as they like.
func (c *chaos) read(s router.Shard, err error, got, want any) error {
	if err != nil {
		return nil
	}
	if got != want {
		return fmt.Errorf("shard %d: got %v, want %v", s.Number(), got, want)
	}
	c.reads.Add(1)
	return nil
}

// verify compares what callers were told with what is there.
func (c *chaos) verify(t *testing.T) {
	t.Helper()
	count := map[int64]int{}
	for n := range shardCount {
		table := fmt.Sprintf("shard_%05d.chaos", n)
		ids := ask[[]int64](t, c.dsn, `select coalesce(array_agg(id), '{}') from `+table+` where id <> 0`)
		for _, id := range ids {
			count[id]++
		}
		if other := ask[int](t, c.dsn, fmt.Sprintf(`select count(*)::int from %s where shard <> %d`, table, n)); other != 0 {
			t.Errorf("shard %d has %d rows of others", n, other)
		}
	}
	var done, safe, lost, unknown int
	for id, err := range c.written {
		switch n := count[id]; {
		case n > 1:
			t.Errorf("write %d is there %d times, its caller was told %v", id, n, err)
		case err == nil:
			if done++; n != 1 {
				t.Errorf("write %d was acknowledged and is not there", id)
			}
		case router.SafeToRetry(err):
			if safe++; n != 0 {
				t.Errorf("write %d is there, and yet safe to retry: %v", id, err)
			}
		case errors.Is(err, router.ErrLost), errors.Is(err, router.ErrOutcomeUnknown):
			lost++
		default:
			unknown++
		}
	}
	t.Logf("of the writes %d were acknowledged, %d were safe to retry, %d lost, %d ended otherwise; %d reads were answered", done, safe, lost, unknown, c.reads.Load())
}
