package rows_test

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
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
)

// clients write while rows move. Each keeps a history of what it has committed: its own users have the rows that it says, and no others. All
// of them count up the balance of shared users.
type clients struct {
	b       *bundle
	all     []*client
	stop    context.CancelFunc
	wg      sync.WaitGroup
	commits atomic.Int64
	maybe   atomic.Int64    // transactions whose connection was lost
	full    atomic.Int64    // transactions that failed on a full disk
	shared  [4]atomic.Int64 // what was added to the balance of users 1 to 4
}

// client is a session that writes rows of one user of its own.
type client struct {
	*clients
	rand    *rand.Rand
	conn    *pgx.Conn
	user    int64
	oldWay  bool // it has search_path public, until that is refused
	direct  bool // it has the path of a shard, and names public.t, until that is refused
	shards  shards.Number
	history history
}

// firstUser is that of the first client.
const firstUser = 1000

// write starts clients. Every third one writes the old way as long as it can, and every third one to the old tables by name.
func (b *bundle) write(count int) *clients {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	all := &clients{b: b, stop: stop}
	for i := range count {
		c := &client{clients: all, rand: rand.New(rand.NewPCG(uint64(i), 1)), user: firstUser + int64(i), oldWay: i%3 == 0, direct: i%3 == 1} //nolint:gosec // a repeatable test
		c.history = history{map[int64]album{}, map[int64]photo{}, map[string]bool{}, map[int64]bool{}, 0, 0}
		n, err := b.m.ForKey(c.user)
		if err != nil {
			b.t.Fatal(err)
		}
		c.shards = n
		b.run(fmt.Sprintf("insert into users (id, email) values (%d, 'c%[1]d')", c.user))
		all.all = append(all.all, c)
	}
	for _, c := range all.all {
		all.wg.Go(func() {
			for ctx.Err() == nil {
				if err := c.step(ctx); err != nil && ctx.Err() == nil {
					b.t.Errorf("client of user %d: %v", c.user, err)
					return
				}
			}
		})
	}
	b.t.Cleanup(all.end)
	return all
}

func (all *clients) failed() bool { return all.b.t.Failed() }

func (all *clients) end() {
	all.stop()
	all.wg.Wait()
	for _, c := range all.all {
		if c.conn != nil {
			_ = c.conn.Close(context.Background())
		}
	}
}

// await returns when the clients have committed some more transactions.
func (all *clients) await(t *testing.T, more int64) {
	t.Helper()
	until := all.commits.Load() + more
	for deadline := time.Now().Add(2 * time.Minute); all.commits.Load() < until; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) || t.Failed() {
			t.Fatalf("clients commit no more: %d, expected %d", all.commits.Load(), until)
		}
	}
}

// connect opens a session with the path of the client. It waits for a server that was killed.
func (c *client) connect(ctx context.Context) error {
	if c.conn != nil && !c.conn.IsClosed() {
		return nil
	}
	path := c.b.m.SearchPath(c.shards)
	if c.oldWay {
		path = "public"
	}
	open := func() (err error) {
		if c.conn, err = pgtest.Open(ctx, c.b.host.ConnString()); err == nil {
			_, err = c.conn.Exec(ctx, "set search_path = "+path)
		}
		return err
	}
	err := open()
	for ; err != nil && c.b.faults && ctx.Err() == nil; err = open() {
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

var errUndo = errors.New("undone by the client")

// step commits one transaction, or none.
func (c *client) step(ctx context.Context) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	levels := []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}
	next := c.history.clone()
	var added [4]int64
	err := pgx.BeginTxFunc(context.WithoutCancel(ctx), c.conn, pgx.TxOptions{IsoLevel: levels[c.rand.IntN(3)]}, func(tx pgx.Tx) error {
		for range 1 + c.rand.IntN(4) {
			if err := c.do(ctx, tx, &next, &added); err != nil {
				return err
			}
		}
		if c.rand.IntN(10) == 0 {
			return errUndo
		}
		return nil
	})
	var pg *pgconn.PgError
	switch {
	case err == nil:
		c.committed(next, added)
		return nil
	case c.b.faults && (c.conn.IsClosed() || errors.As(err, &pg) && pg.Severity == "PANIC"):
		return c.settle(next, added)
	case c.b.faults && errors.As(err, &pg) && pg.Code == diskFull:
		c.full.Add(1)
		return nil
	case errors.Is(err, errUndo):
		return nil
	case errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01"):
		return nil
	case errors.As(err, &pg) && (pg.Code == mirror.RefusedOldWay || pg.Code == mirror.RefusedShard || pg.Code == "42P01" && c.direct) && (c.oldWay || c.direct):
		c.oldWay, c.direct = false, false
		return c.conn.Close(ctx)
	}
	return err
}

func (c *client) committed(now history, added [4]int64) {
	c.history = now
	c.commits.Add(1)
	for i := range added {
		c.shared[i].Add(added[i])
	}
}

// do runs one statement of a transaction, or some within a savepoint.
func (c *client) do(ctx context.Context, tx pgx.Tx, h *history, added *[4]int64) error {
	if c.rand.IntN(6) == 0 { // a savepoint, which half of them roll back
		inner, innerAdded := h.clone(), *added
		err := pgx.BeginFunc(context.WithoutCancel(ctx), tx, func(tx pgx.Tx) error {
			for range 2 {
				if err := c.one(tx, &inner, &innerAdded); err != nil {
					return err
				}
			}
			if c.rand.IntN(2) == 0 {
				return errUndo
			}
			return nil
		})
		if errors.Is(err, errUndo) {
			return nil
		}
		*h, *added = inner, innerAdded
		return err
	}
	return c.one(tx, h, added)
}

// one runs one statement.
func (c *client) one(tx pgx.Tx, h *history, added *[4]int64) error {
	ctx := context.Background() // a statement under way ends
	name := func(table string) string {
		if c.direct {
			return "public." + table
		}
		return table
	}
	exec := func(query string, args ...any) error {
		for _, table := range []string{"users", "albums", "photos", "tags", "follows", "moves"} {
			query = strings.ReplaceAll(query, "{"+table+"}", name(table))
		}
		_, err := tx.Exec(ctx, query, args...)
		return err
	}
	title := fmt.Sprintf("t%d", c.rand.Int64())
	id := c.rand.Int64N(1 << 40)
	a, p := pick(c.rand, h.albums), pick(c.rand, h.photos)
	switch op := c.rand.IntN(16); {
	case op < 2 || a == 0:
		h.albums[id] = album{title: title}
		return exec(`insert into {albums} (id, user_id, title) values ($1, $2, $3)`, id, c.user, title)
	case op < 5 || p == 0:
		h.photos[id] = photo{a, title}
		row := h.albums[a]
		row.photos++
		h.albums[a] = row
		if c.rand.IntN(2) == 0 {
			return exec(`insert into {photos} (id, album_id, title) values ($1, $2, $3)`, id, a, title)
		}
		return exec(`insert into {photos} (id, album_id, title) values ($1, $2, $3) on conflict (id) do update set title = excluded.title`, id, a, title)
	case op == 5:
		row := h.photos[p]
		row.title = title
		h.photos[p] = row
		return exec(`update {photos} set title = $2 where id = $1`, p, title)
	case op == 6: // to another album
		row, from, to := h.photos[p], h.albums[h.photos[p].album], a
		from.photos--
		h.albums[row.album] = from
		into := h.albums[to]
		into.photos++
		h.albums[to] = into
		row.album = to
		h.photos[p] = row
		return exec(`update {photos} set album_id = $2 where id = $1`, p, to)
	case op == 7: // another primary key
		h.renamePhoto(p, id)
		return exec(`update {photos} set id = $2 where id = $1`, p, id)
	case op == 8:
		h.renameAlbum(a, id)
		return exec(`update {albums} set id = $2 where id = $1`, a, id)
	case op == 9:
		h.deletePhoto(p, true)
		return exec(`delete from {photos} where id = $1`, p)
	case op == 10:
		for q, row := range h.photos {
			if row.album == a {
				h.deletePhoto(q, false)
			}
		}
		delete(h.albums, a)
		return exec(`delete from {albums} where id = $1`, a)
	case op == 11:
		h.tags[fmt.Sprintf("%d %s", p, title)] = true
		return exec(`insert into {tags} values ($1, $2)`, p, title)
	case op == 12:
		row := h.albums[h.photos[p].album]
		row.cover = p
		h.albums[h.photos[p].album] = row
		return exec(`update {albums} set cover = $2 where id = $1`, h.photos[p].album, p)
	case op == 13:
		other := 1 + c.rand.Int64N(40)
		if h.follows[other] {
			delete(h.follows, other)
			return exec(`delete from {follows} where follower = $1 and followee = $2`, c.user, other)
		}
		h.follows[other] = true
		return exec(`insert into {follows} values ($1, $2)`, c.user, other)
	case op == 14:
		h.moves++
		return exec(`insert into {moves} (user_id, amount) values ($1, 1)`, c.user)
	}
	if c.rand.IntN(2) == 0 {
		h.updates++
		return exec(`update {users} set country = 'nl' where id = $1`, c.user)
	}
	for i := range added { // a user of the same shard that all clients write
		if n, err := c.b.m.ForKey(int64(i + 1)); err == nil && n == c.shards {
			added[i]++
			h.moves++ // so that the client's own rows differ: see settle
			if err := exec(`insert into {moves} (user_id, amount) values ($1, 1)`, c.user); err != nil {
				return err
			}
			return exec(`update {users} set balance = balance + 1 where id = $1`, i+1)
		}
	}
	return nil
}
