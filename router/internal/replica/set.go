package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// maxPause and minPause bound the pause between two measurements.
	maxPause = 100 * time.Millisecond
	minPause = 5 * time.Millisecond
	// perLag is the number of measurements within the lag that a reader allows.
	perLag = 8
	// idleAfter is how long the measuring continues after the last read.
	idleAfter = 10 * time.Second
)

// Server is a server to measure: a primary or a replica.
type Server struct {
	Name string // for errors

	// Connect makes a connection for measurements, which reads do not use. The set calls it again after each failure. ctx
	// has a time limit.
	Connect func(ctx context.Context) (*pgx.Conn, error)
}

// Set is the replicas of a host and their primary. It is safe for concurrent use.
type Set struct {
	Budget Budget // for reads that are sent twice

	// Promoted is called, with no lock held, when a replica turns out to be a primary. It must return at once; nil for nothing.
	Promoted func()

	primary Server
	all     []*replica
	base    context.Context

	idleAfter atomic.Int64 // nanoseconds
	turn      atomic.Uint32
	measuring atomic.Bool  // written with mu held
	wanted    atomic.Int64 // time of the last read, by clock
	pause     atomic.Int64 // between two measurements, nanoseconds
	waiting   atomic.Int32 // reads that wait for a measurement

	work sync.WaitGroup // what Close waits for

	mu       sync.Mutex // guards what follows
	closed   bool
	stop     context.CancelFunc // ends the measuring
	measured chan struct{}      // closed at the next measurement
	log      history
	system   int64 // the primary's cluster; 0 if unknown
	timeline uint32
	trouble  error // why the last measurement of the primary failed
}

// clock is the origin of times that are stored as numbers.
var clock = time.Now()

// New returns a set that does nothing before the first [Set.Find]. The caller must close it. Background work uses the
// values of base, but not its cancellation.
func New(base context.Context, primary Server, replicas []Server) *Set {
	s := &Set{primary: primary, base: context.WithoutCancel(base), measured: make(chan struct{})}
	s.idleAfter.Store(int64(idleAfter))
	s.Budget.tokens.Store(budgetBurst * budgetCost)
	for _, server := range replicas {
		r := &replica{Server: server, set: s, woken: make(chan struct{}, 1), servers: map[string]facts{}}
		r.begin()
		s.all = append(s.all, r)
	}
	return s
}

// Len returns the number of replicas.
func (s *Set) Len() int { return len(s.all) }

// MeasureFor sets how long the measuring continues after the last read. Defaults to 10 s.
func (s *Set) MeasureFor(d time.Duration) { s.idleAfter.Store(int64(d)) }

// want records a read that allows this lag, and starts the measuring.
func (s *Set) want(within time.Duration) {
	now := int64(time.Since(clock))
	if now-s.wanted.Load() > s.idleAfter.Load()/10 {
		s.wanted.Store(now)
	}
	pause := int64(min(max(within/perLag, minPause), maxPause))
	if s.measuring.Load() && pause >= s.pause.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case !s.measuring.Load():
		s.wanted.Store(now)
		s.pause.Store(pause)
		s.measure()
	default:
		s.pause.Store(min(pause, s.pause.Load()))
	}
}

// measure starts the measuring. It runs until there was no read for a while, or until Close. The caller holds mu.
func (s *Set) measure() {
	ctx, stop := context.WithCancel(s.base)
	s.stop = stop
	s.measuring.Store(true)
	s.work.Go(func() {
		s.measurePrimary(ctx)
		stop()
	})
	for _, r := range s.all {
		s.work.Go(func() { r.measureAll(ctx) })
	}
}

// idle ends the measuring if there was no read for a while, and reports whether it did.
func (s *Set) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(time.Since(clock))-s.wanted.Load() < s.idleAfter.Load() {
		return false
	}
	s.measuring.Store(false)
	return true
}

// next returns a channel that is closed at the next measurement.
func (s *Set) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.measured
}

// notify wakes all reads that wait for a measurement. The caller holds mu.
func (s *Set) notify() {
	close(s.measured)
	s.measured = make(chan struct{})
}

// promoted reports that a replica turned out to be a primary.
func (s *Set) promoted() {
	if s.Promoted != nil {
		s.Promoted()
	}
}

// Go runs fn in a goroutine that Close waits for. After Close it returns false and runs nothing.
func (s *Set) Go(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(fn)
	return true
}

// Close ends the measuring and waits for all goroutines. It calls drain first, which waits for reads: until then reads
// still notice a replica that stops answering.
func (s *Set) Close(drain func()) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	drain()
	for _, r := range s.all {
		r.life.Load().end()
	}
	s.mu.Lock()
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	s.work.Wait()
}
