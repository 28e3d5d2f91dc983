package adopt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
)

// errorsKept is the number of errors that are kept.
const errorsKept = 3

// MostClients is the largest number of clients of the old code, and of the new.
const MostClients = 8

// stride is the distance of the users of one client: a prime, so that they are of all shards, and more than all clients.
const stride = 17

// crowded are the users whose balance all clients write.
const crowded = 8

// querier runs a statement the old way, or by way of a shard.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Begin(ctx context.Context) (pgx.Tx, error)
}

// clients are all clients.
type clients struct {
	all      []*client
	balances [crowded]atomic.Int64 // what clients have added to the first users
	pause    time.Duration
	ctx      context.Context // of the loops; statements have none
	stop     context.CancelFunc
	loops    sync.WaitGroup
	gate     sync.RWMutex // held for reading while a client makes a call
}

// client makes one statement after the other, as the old or as the new code.
type client struct {
	of      *clients
	number  int64
	old     bool
	reads   bool // only: the old tables are closed
	users   []int64
	rand    *rand.Rand
	on      func(user int64) (querier, error)
	history *history
	ended   atomic.Bool

	mu     sync.Mutex // guards what follows
	took   []timing   // statements since the last take
	counts Counts
}

func newClients(pause time.Duration) *clients {
	c := &clients{pause: pause}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// start starts a client. Clients with different numbers write rows of different users.
func (all *clients) start(number int64, users int, old bool, on func(int64) (querier, error), closing func()) {
	c := &client{of: all, number: number, old: old, on: on, history: newHistory(), rand: rand.New(rand.NewPCG(uint64(number), 45))}
	for user := number + 1; user <= int64(users) && len(c.users) < 100; user += stride {
		c.users = append(c.users, user)
	}
	all.all = append(all.all, c)
	all.loops.Go(func() {
		defer closing()
		for all.ctx.Err() == nil && !c.ended.Load() {
			all.gate.RLock()
			if !c.ended.Load() {
				c.call()
			}
			all.gate.RUnlock()
			time.Sleep(all.pause)
		}
	})
}

// hold waits until no client makes a call, and keeps them from making one until release.
func (all *clients) hold() (release func()) {
	all.gate.Lock()
	return all.gate.Unlock
}

// end stops all clients, and waits for them.
func (all *clients) end() {
	all.stop()
	all.loops.Wait()
}

// endOld stops the clients of the old code. None of them makes a call afterwards.
func (all *clients) endOld() {
	defer all.hold()()
	for _, c := range all.all {
		if c.old {
			c.ended.Store(true)
		}
	}
}

// timing is how long a statement of a client took.
type timing struct {
	ms   float64
	what string
}

// take returns all statements that ended since the last take.
func (all *clients) take() (took []timing) {
	for _, c := range all.all {
		c.mu.Lock()
		took = append(took, c.took...)
		c.took = nil
		c.mu.Unlock()
	}
	return took
}

// timed runs one statement.
func (c *client) timed(what string, statement func() error) error {
	began := time.Now()
	err := statement()
	ms := float64(time.Since(began)) / float64(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	by := "new"
	if c.old {
		by = "old"
	}
	c.took = append(c.took, timing{ms, what + ", " + by})
	return err
}

// call makes one call and counts it.
func (c *client) call() {
	user := c.users[c.rand.IntN(len(c.users))]
	on, err := c.on(user)
	if err == nil {
		err = c.one(on, user)
	}
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if pg := (*pgconn.PgError)(nil); c.old && errors.As(err, &pg) && pg.Code == mirror.RefusedOldWay {
		c.counts.Refused++
		c.reads = true
		return
	}
	c.counts.Failed++
	c.counts.say("client %d, old %t: %v", c.number, c.old, err)
}

func (c *Counts) say(format string, args ...any) {
	if len(c.Errors) < errorsKept {
		c.Errors = append(c.Errors, fmt.Sprintf(format, args...))
	}
}

// wrote counts a row that was written, after the history has it.
func (c *client) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Written++
}

// one makes a call for a user: mostly one statement, sometimes a transaction of several.
func (c *client) one(on querier, user int64) error {
	op := c.rand.IntN(20)
	if c.reads {
		op = 0
	}
	switch {
	case op < 6:
		return c.read(chain[c.rand.IntN(len(chain))])
	case op < 8:
		return c.insertTree(on, user)
	case op < 14:
		return c.insert(chain[c.rand.IntN(len(chain))], user)
	case op < 16:
		return c.update(chain[c.rand.IntN(len(chain))])
	case op == 16:
		return c.remove()
	case op == 17:
		n := c.rand.Int64N(crowded)
		return c.pay(n)
	}
	return c.togglePair(pairs[c.rand.IntN(len(pairs))], user)
}

// read checks the text of a row by its key.
func (c *client) read(t table) error {
	k, s, ok := c.history.pick(c.rand, t.name)
	if !ok {
		return nil
	}
	on, err := c.on(s.user)
	if err != nil {
		return err
	}
	var text string
	err = c.timed("select "+t.name, func() error {
		return on.QueryRow(context.Background(), fmt.Sprintf(`select %s from %s where id = $1`, t.text, t.name), k.id).Scan(&text)
	})
	if err != nil || text == s.text {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Changed++
	c.counts.say("client %d read %q of %s %d: expected %q", c.number, text, t.name, k.id, s.text)
	return nil
}

func (c *client) text() string { return fmt.Sprintf("%d %d", c.number, c.rand.Int64()) }

// insertRow inserts a row below another one.
func (c *client) insertRow(on interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, t table, parent int64, text string,
) (k key, err error) {
	k.parent = parent
	err = c.timed("insert "+t.name, func() error {
		query := fmt.Sprintf(`insert into %s (%s, %s) values ($1, $2) returning id`, t.name, t.parent, t.text)
		return on.QueryRow(context.Background(), query, parent, text).Scan(&k.id)
	})
	return k, err
}

func (c *client) insert(t table, user int64) error {
	parent := user
	if t.above != "" {
		k, s, ok := c.history.pick(c.rand, t.above)
		if !ok {
			return nil
		}
		parent, user = k.id, s.user
	}
	on, err := c.on(user)
	if err != nil {
		return err
	}
	text := c.text()
	k, err := c.insertRow(on, t, parent, text)
	if err == nil {
		c.history.put(t.name, k, state{user: user, text: text})
		c.wrote()
	}
	return err
}

// insertTree inserts an album, a photo and so on in one transaction.
func (c *client) insertTree(on querier, user int64) error {
	ctx := context.Background()
	var tx pgx.Tx
	if err := c.timed("begin", func() (err error) { tx, err = on.Begin(ctx); return err }); err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	keys, texts, parent := make([]key, len(chain)), make([]string, len(chain)), user
	for i, t := range chain {
		var err error
		texts[i] = c.text()
		if keys[i], err = c.insertRow(tx, t, parent, texts[i]); err != nil {
			return err
		}
		parent = keys[i].id
	}
	if err := c.timed("commit", func() error { return tx.Commit(ctx) }); err != nil {
		return err
	}
	for i, t := range chain {
		c.history.put(t.name, keys[i], state{user: user, text: texts[i]})
		c.wrote()
	}
	return nil
}

// write runs a statement that writes one row, and fails if it writes another number.
func (c *client) write(what string, user int64, query string, args ...any) error {
	on, err := c.on(user)
	if err != nil {
		return err
	}
	return c.timed(what, func() error {
		tag, err := on.Exec(context.Background(), query, args...)
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("%s %v: %d rows, expected 1", query, args, tag.RowsAffected())
		}
		return err
	})
}

func (c *client) update(t table) error {
	k, s, ok := c.history.pick(c.rand, t.name)
	if !ok {
		return nil
	}
	s.text = c.text()
	err := c.write("update "+t.name, s.user, fmt.Sprintf(`update %s set %s = $2 where id = $1`, t.name, t.text), k.id, s.text)
	if err == nil {
		c.history.put(t.name, k, s)
		c.wrote()
	}
	return err
}

// remove deletes a row with all below it.
func (c *client) remove() error {
	t := chain[1+c.rand.IntN(len(chain)-1)]
	k, s, ok := c.history.pick(c.rand, t.name)
	if !ok {
		return nil
	}
	err := c.write("delete "+t.name, s.user, fmt.Sprintf(`delete from %s where id = $1`, t.name), k.id)
	if err == nil {
		c.history.remove(t.name, k)
		c.wrote()
	}
	return err
}

// pay adds to the balance of a user that all clients write.
func (c *client) pay(n int64) error {
	err := c.write("update users", n+1, `update users set balance = balance + 1 where id = $1`, n+1)
	if err == nil {
		c.of.balances[n].Add(1)
		c.wrote()
	}
	return err
}

// togglePair inserts or deletes a row of a table of pairs.
func (c *client) togglePair(t table, user int64) error {
	k := key{user, 1 + c.rand.Int64N(1000)}
	if t.above != "" {
		above, s, ok := c.history.pick(c.rand, t.above)
		if !ok {
			return nil
		}
		k, user = key{above.id, 1 + c.rand.Int64N(20)}, s.user
	} else {
		k.parent = c.users[c.rand.IntN(len(c.users))]
	}
	s, known := c.history.rows[t.name][k]
	if known && !s.deleted {
		err := c.write("delete "+t.name, user, fmt.Sprintf(`delete from %s where %s = $1 and %s = $2`, t.name, t.id, t.parent), k.id, k.parent)
		if err == nil {
			c.history.remove(t.name, k)
			c.wrote()
		}
		return err
	}
	on, err := c.on(user)
	if err != nil {
		return err
	}
	var tag pgconn.CommandTag
	err = c.timed("insert "+t.name, func() (err error) {
		tag, err = on.Exec(context.Background(), fmt.Sprintf(`insert into %s values ($1, $2) on conflict do nothing`, t.name), k.id, k.parent)
		return err
	})
	if err == nil && tag.RowsAffected() == 1 { // one of the rows that were there before is not the client's
		c.history.put(t.name, k, state{user: user})
		c.wrote()
	}
	return err
}

// oldWay returns how a client of the old code reaches its rows: by one connection.
func oldWay(conn *pgx.Conn) func(int64) (querier, error) {
	return func(int64) (querier, error) { return conn, nil }
}

// newWay returns how a client of the new code reaches its rows: by the router.
func newWay(m *shards.Map, r *router.Router) func(int64) (querier, error) {
	return func(user int64) (querier, error) {
		n, err := m.ForKey(user)
		if err != nil {
			return nil, err
		}
		return r.ForShard(n)
	}
}
