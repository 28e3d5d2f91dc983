package router

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// lines are the connections of one host, and who uses them. pgxpool makes the connections and ends them; which of them a
// shard's work goes to is decided here.
//
// A shard has its lines: those that have worked for it, know its tables and keep its statements prepared. Its work goes
// to one of them, and if they are busy it waits in a line's queue rather than teach it to another line. A shard that has
// had more under way than it has lines, on the average of its last few dozen calls, gets another one.
type lines struct {
	host *host
	pool *pgxpool.Pool

	few       int           // how many lines are used at least in a crowd
	room      int           // for how many shards a line is meant
	spare     int           // how many it may have before shards of other lines wait for those
	idleLimit time.Duration // how long a line may be idle
	period    time.Duration // how often that is looked at

	stopping sync.WaitGroup // what has servers stop

	mu       sync.Mutex // guards what follows, and what lines, calls and homes say that it guards
	all      []*line    // as many as the pool may have connections
	waiting  []*call    // for any line, the first to come first
	turns    uint64     // how many calls there were
	inflight int        // the calls under way
	load     float64    // the mean of that
	sent     uint64     // how many times calls were sent, together or not
	batches  uint64     // how many times calls were sent down a line together
	batched  uint64     // how many calls these were
	sizes    Sizes
	timing   timing        // of groups
	twice    float64       // how many calls may be asked for twice, see late.go
	down     error         // why no calls are taken for the time being, nil as long as they are
	closed   error         // why there are no lines any more, nil as long as there are
	ended    chan struct{} // closed when all lines are absent after close
	later    *time.Timer   // looks for lines that have been idle for too long; nil while there are none
}

// lineState is what a line is doing.
type lineState int

const (
	absent lineState = iota // it has no connection
	idle
	busy // it belongs to a caller, or to a goroutine that works for its queue
)

// line is one connection, or the place for one.
type line struct {
	*lines

	// Guarded by lines.mu.
	state lineState
	queue []*call                    // that wait for this line
	homes []*home                    // that have this line among theirs
	known map[shards.Number]struct{} // shards for which the connection has worked
	slow  bool                       // what it does takes long: nobody should wait for it
	group *group                     // that it works for
	watch *time.Timer
	armed bool // the watch is running

	began    uint64  // how many times the host's calls had been sent when its own were, the latest time
	pressure float64 // how many of its shards' last calls have found it busy, 0 to 1

	steps atomic.Int64 // counts what it gets done
	seen  int64        // of the steps, when the watch looked last; guarded by lines.mu

	// Whoever has the line may use these.
	lease   *pgxpool.Conn // nil without a connection
	session *session.Session
	sending []sentCall // used again and again
	freed   time.Time  // when it was last given back
	expires time.Time  // when its connection is to be closed
}

// loadCalls is over how many calls the number of those under way is averaged.
const loadCalls = 32

func newLines(h *host, pool *pgxpool.Pool) *lines {
	config := pool.Config()
	ls := &lines{
		host: h, pool: pool, ended: make(chan struct{}),
		twice: twiceBurst, few: max(2, runtime.GOMAXPROCS(0)), idleLimit: config.MaxConnIdleTime, period: config.HealthCheckPeriod,
	}
	for range config.MaxConns {
		ls.all = append(ls.all, &line{lines: ls, known: map[shards.Number]struct{}{}})
	}
	return ls
}

// enter finds a line for a call. It returns the line if the caller is to use it, with or without a connection; else the
// call waits, and is woken with a line or with an answer.
func (ls *lines) enter(c *call) (*line, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed != nil {
		return nil, ls.closed
	}
	if ls.down != nil {
		return nil, ls.down
	}
	ls.turns++
	c.turn = ls.turns
	ls.inflight++
	ls.load += (float64(ls.inflight) - ls.load) / loadCalls
	c.inflight = true
	if h := c.home; h != nil {
		h.inflight++
		h.load += (float64(h.inflight) - h.load) / loadCalls
	}
	return ls.place(c, nil), nil
}

// place gives a call a line, or puts it into a queue. The caller holds mu.
func (ls *lines) place(c *call, not *line) *line {
	l := ls.choose(c, not)
	if c.woken == nil && (l == nil || l.state == busy) {
		c.woken = make(chan struct{})
	}
	switch {
	case l == nil:
		ls.wait(c)
		return nil
	case l.state != busy:
		l.take(c)
		return l
	}
	l.use(c.home)
	c.state = callQueued
	c.queue = l
	l.queue = append(l.queue, c)
	l.watchOver()
	return nil
}

// wait has a call wait for any line, behind those that came before it. The caller holds mu.
func (ls *lines) wait(c *call) {
	c.state = callWaiting
	at := len(ls.waiting)
	for at > 0 && ls.waiting[at-1].turn > c.turn {
		at--
	}
	ls.waiting = slices.Insert(ls.waiting, at, c)
}

// take marks a line as a caller's. The caller holds mu.
func (l *line) take(c *call) {
	l.state = busy
	l.slow = c.slow
	l.steps.Add(1)
	l.use(c.home)
}

// learn makes the line one of the shard's. The caller holds mu.
func (l *line) learn(h *home) {
	l.known[h.Number] = struct{}{}
	h.lines = append(h.lines, l)
	l.homes = append(l.homes, h)
}

// use notes that the line works for a shard, which becomes its own if it has no other. The caller holds mu.
func (l *line) use(h *home) {
	switch {
	case h == nil || slices.Contains(h.lines, l):
	case len(h.lines) == 0 && h.next.Load() == nil:
		l.learn(h)
	default:
		l.known[h.Number] = struct{}{}
	}
}

// forget makes the line none of the shard's. The caller holds mu.
func (l *line) forget(h *home) {
	h.lines = slices.DeleteFunc(h.lines, func(other *line) bool { return other == l })
	l.homes = slices.DeleteFunc(l.homes, func(other *home) bool { return other == h })
}

// drop makes all lines none of the shard's.
func (ls *lines) drop(h *home) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for len(h.lines) > 0 {
		h.lines[0].forget(h)
	}
}

// forgetAll takes the line away from all its shards. The caller holds mu.
func (l *line) forgetAll() {
	for _, h := range l.homes {
		h.lines = slices.DeleteFunc(h.lines, func(other *line) bool { return other == l })
	}
	l.homes = nil
}

// leave ends the wait of a call whose caller does not want to wait any longer, and tells whether a line was at work for
// it. It returns false if the call has been woken meanwhile: then it has to be taken as it is.
func (ls *lines) leave(c *call) (sent, left bool) {
	ls.mu.Lock()
	mine := func(other *call) bool { return other == c }
	switch c.state {
	case callWaiting:
		ls.waiting = slices.DeleteFunc(ls.waiting, mine)
		ls.over(c)
	case callQueued:
		c.queue.queue = slices.DeleteFunc(c.queue.queue, mine)
		ls.over(c)
	case callSent:
		sent = true
	default:
		ls.mu.Unlock()
		return false, false
	}
	left = !sent || c.settled.CompareAndSwap(false, true)
	ls.mu.Unlock()
	if sent && left {
		c.abandoned()
	}
	return sent, left
}

// over notes that a call has ended. The caller holds mu.
func (ls *lines) over(c *call) {
	if !c.inflight {
		return
	}
	c.inflight = false
	ls.inflight--
	if c.home != nil {
		c.home.inflight--
	}
}
