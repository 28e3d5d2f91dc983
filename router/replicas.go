package router

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// replicas are those of a host, which is their primary. Nothing is done about them, and no connection made, before
// somebody wants to read from them; and when nobody has for a while they are left alone again.
type replicas struct {
	primary *host
	cfg     Config
	base    context.Context // what goes on after a call is done has it
	lasts   atomic.Int64    // how long after the last read the measuring goes on, watchIdle
	all     []*replica      // in the order of the host
	budget  hedgeBudget

	shards   atomic.Int64 // of the host
	turn     atomic.Uint32
	fallback atomic.Uint64 // reads that the primary got
	hedged   atomic.Uint64 // reads that were sent twice
	won      atomic.Uint64 // of them, how many the second was quicker with

	watching atomic.Bool  // the replicas are being measured; written with mu held
	wanted   atomic.Int64 // when somebody read last, by clock
	every    atomic.Int64 // how long the pause between two measurements is
	waiting  atomic.Int32 // how many wait for news of a measurement

	work sync.WaitGroup // whatever has to end before close returns

	mu      sync.Mutex // guards what follows
	closed  bool
	stop    context.CancelFunc // ends the measuring
	news    chan struct{}      // closed at the next measurement
	log     history
	system  int64 // the primary's cluster; 0 if unknown
	line    uint32
	trouble error // why the primary could not be asked the last time
}

const (
	// watchMost and watchLeast are the bounds of the pause between two measurements.
	watchMost  = 100 * time.Millisecond
	watchLeast = 5 * time.Millisecond
	// watchOften is how often a replica is measured in the time that a reader allows it to be behind.
	watchOften = 8
	// watchIdle is how long after the last read the measuring goes on.
	watchIdle = 10 * time.Second
)

// clock is what times are measured from that are kept as numbers.
var clock = time.Now()

// newReplicas returns the replicas of a host, nil if it has none.
func newReplicas(ctx context.Context, h *host, cfg Config) (*replicas, error) {
	if len(h.Replicas) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	rs := &replicas{primary: h, cfg: cfg, base: context.WithoutCancel(ctx), news: make(chan struct{})}
	rs.lasts.Store(int64(watchIdle))
	rs.budget.tokens.Store(hedgeBurst * hedgeCost)
	for i := range h.Replicas {
		r, err := newReplica(rs, h.Replica(i))
		if err != nil {
			return nil, err
		}
		rs.all = append(rs.all, r)
	}
	return rs, nil
}

// want says that somebody reads who allows a replica to be behind for a time.
func (rs *replicas) want(within time.Duration) {
	now := int64(time.Since(clock))
	if now-rs.wanted.Load() > rs.lasts.Load()/10 {
		rs.wanted.Store(now)
	}
	pause := int64(min(max(within/watchOften, watchLeast), watchMost))
	if rs.watching.Load() && pause >= rs.every.Load() {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case rs.closed:
	case !rs.watching.Load():
		rs.wanted.Store(now)
		rs.every.Store(pause)
		rs.watch()
	default:
		rs.every.Store(min(pause, rs.every.Load()))
	}
}

// hear returns a channel that is closed at the next measurement.
func (rs *replicas) hear() <-chan struct{} {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.news
}

// tell tells those who wait that there was a measurement. The caller holds mu.
func (rs *replicas) tell() {
	close(rs.news)
	rs.news = make(chan struct{})
}

// close closes the replicas, because the primary is closed for a reason, and waits until nothing is under way with them.
func (rs *replicas) close(why error) {
	if retired(why) {
		why = errReplicaLeft // for which a reader looks for the shard's new home, and nobody else
	}
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	var wait sync.WaitGroup
	for _, r := range rs.all {
		wait.Go(func() { r.close(why) })
	}
	wait.Wait() // as long as there are reads, they are told of a replica that does not answer
	rs.mu.Lock()
	if rs.stop != nil {
		rs.stop()
	}
	rs.mu.Unlock()
	rs.work.Wait()
}

// begin runs fn in a goroutine that close waits for. It returns false if it is too late for that.
func (rs *replicas) begin(fn func()) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return false
	}
	rs.work.Go(fn)
	return true
}

// copies are the homes in which readers find a shard: on the primary, and on each replica. They are made when they are
// wanted: most shards of most hosts are read in few of them.
type copies []atomic.Pointer[home]

// copy returns the home in which readers find the shard on the primary, with r nil, or on a replica, which is open.
func (h *home) copy(rs *replicas, i int) (*home, error) {
	all := h.copies.Load()
	if all == nil {
		size := 1
		if rs != nil {
			size += len(rs.all)
		}
		made := make(copies, size)
		h.copies.CompareAndSwap(nil, &made)
		all = h.copies.Load()
	}
	at := &(*all)[i+1]
	if found := at.Load(); found != nil {
		return found, nil
	}
	on := h.host
	if i >= 0 {
		var err error
		if on, err = rs.all[i].open(); err != nil {
			return nil, err
		}
	}
	at.CompareAndSwap(nil, &home{number: h.number, schema: h.schema, path: h.path, host: on, safe: true})
	return at.Load(), nil
}

// dropCopies makes the homes in which readers found the shard ones that no connection is kept for, since it has gone to
// another home.
func (h *home) dropCopies(next *home) {
	all := h.copies.Load()
	if all == nil {
		return
	}
	for i := range *all {
		if c := (*all)[i].Load(); c != nil {
			c.next.Store(next)
			c.host.lines.drop(c)
		}
	}
}
