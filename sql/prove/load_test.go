package prove_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// loadConfig says how IDs are asked for while faults are done.
type loadConfig struct {
	dsn      func() string // where the shards are now; asked before each connection
	sessions int
	numbers  []shards.Number // defaults to all, half of the sessions on the hot one
	bulk     int             // the most IDs of one statement; defaults to 500, or 2000 in the full form
	breaks   bool            // calls may fail because of what is done to sessions or to the server
}

// load is a number of workers that ask for IDs.
type load struct {
	t       *testing.T
	cfg     loadConfig
	history *history
	workers []*worker
	wg      sync.WaitGroup

	stopped  chan struct{}
	stopOnce sync.Once

	cut       atomic.Int64 // calls that the server canceled
	inCatchUp atomic.Int64 // those of them that were in catch_up
}

// startLoad starts the workers. They end by stop, and with the test at the latest.
func startLoad(t *testing.T, h *history, cfg loadConfig) *load {
	t.Helper()
	if cfg.numbers == nil {
		cfg.numbers = []shards.Number{hot, lively, hot, idle, hot, another}
	}
	if cfg.bulk == 0 {
		cfg.bulk = form(500, 2000)
	}
	l := &load{t: t, cfg: cfg, history: h, stopped: make(chan struct{})}
	for i := range cfg.sessions {
		w := &worker{load: l, shard: cfg.numbers[i%len(cfg.numbers)]}
		w.ways = ways(w.shard, i, cfg.bulk)
		l.workers = append(l.workers, w)
		l.wg.Go(w.work)
	}
	t.Cleanup(func() { l.stop(); l.close() })
	return l
}

// fault notes that something is about to be done to the server, once IDs have come since what was done before.
func (l *load) fault(format string, args ...any) {
	l.awaitIDs()
	l.history.fault(format, args...)
}

// awaitIDs waits until a call that began after the latest fault has brought IDs: on a slow machine no length of time is
// long enough for sure. If none come, the history says so in the end.
func (l *load) awaitIDs() {
	deadline := time.Now().Add(callLimit)
	for l.history.answered.Load() <= l.history.phase.Load() && !l.ended() && l.t.Context().Err() == nil {
		if time.Now().After(deadline) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// awaitMore waits until so many more IDs have come that some of them are known to nobody but those who received them.
func (l *load) awaitMore() {
	l.t.Helper()
	enough := l.history.received() + 2000
	eventually(l.t, "more IDs", func() bool { return l.history.received() >= enough || l.t.Failed() })
}

// stop has the workers end their calls and waits for that. Their connections stay open.
func (l *load) stop() {
	l.awaitIDs()
	l.stopOnce.Do(func() { close(l.stopped) })
	l.wg.Wait()
}

// close closes the connections of workers that have ended.
func (l *load) close() {
	for _, w := range l.workers {
		if conn := w.conn.Swap(nil); conn != nil {
			_ = conn.Close(context.Background()) // the server may be gone
		}
	}
}

// interrupted counts a call that ended by an error of the server.
func (l *load) interrupted(err *pgconn.PgError) {
	l.cut.Add(1)
	if strings.Contains(err.Where, "catch_up") {
		l.inCatchUp.Add(1)
	}
}

func (l *load) ended() bool {
	select {
	case <-l.stopped:
		return true
	default:
		return l.t.Failed()
	}
}

// calling returns the workers that have a call under way.
func (l *load) calling() []*worker {
	var workers []*worker
	for _, w := range l.workers {
		if w.busy.Load() != 0 {
			workers = append(workers, w)
		}
	}
	return workers
}

// worker is one client, which opens a new connection when it has lost its old one.
type worker struct {
	load  *load
	shard shards.Number
	ways  []way

	conn atomic.Pointer[pgx.Conn] // set by the worker alone; others may only cancel by it
	busy atomic.Int64             // which of the worker's calls is under way, 0 for none

	cancel atomic.Pointer[context.CancelFunc] // ends the call under way from the client's side

	session *session
	ids     []shards.ID // of the call under way
}

// retry is how long a worker waits before it tries again to connect.
const retry = 5 * time.Millisecond

// callLimit is how long a call may take at most, with any fault.
const callLimit = 5 * time.Minute

func (w *worker) work() {
	for round := 0; !w.load.ended(); round++ {
		if w.conn.Load() == nil && !w.connect() {
			w.wait(retry)
			continue
		}
		way := w.ways[round%len(w.ways)]
		if way.pause != nil {
			w.wait(way.pause())
		}
		err := w.call(way, round+1)
		if err != nil && !w.mayFail(err) && w.load.t.Context().Err() == nil { // else the test has failed already
			w.load.t.Errorf("shard %d: %s: %v", w.shard, way.query, err)
		}
	}
}

func (w *worker) connect() bool {
	ctx, cancel := context.WithTimeout(w.load.t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.load.cfg.dsn())
	if err != nil {
		return false // the server is not there; should it stay so, the history says that no IDs came
	}
	w.conn.Store(conn)
	w.session = w.load.history.session(w.shard)
	return true
}

// call makes one call and enters into the history what it brought, all of it or the part before an error.
func (w *worker) call(way way, number int) error {
	ctx, cancel := context.WithTimeout(w.load.t.Context(), callLimit)
	defer cancel()
	w.cancel.Store(&cancel)
	conn := w.conn.Load()
	call := w.session.begin()
	w.busy.Store(int64(number))
	err := w.receive(ctx, conn, way)
	w.busy.Store(0)
	call.end(w.ids)
	if conn.IsClosed() {
		w.conn.Store(nil)
	}
	return err
}

func (w *worker) wait(length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.load.stopped:
	}
}
