package conns

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/primary"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// Pool manages the connections of one host. pgxpool opens and closes them; the Pool decides which one a request gets.
//
// The first of its lanes are those that reads share. A shard's reads go to the same of them each time, which know its tables
// and keep its statements prepared, and wait in a lane's queue if it is busy.
type Pool struct {
	*session.Host
	pool      *pgxpool.Pool
	login     *connect.Login
	primary   *primary.Watch
	awaitMove func(context.Context, *Shard) bool
	noGroups  bool // every statement is sent by itself
	shares    bool // requests may share a connection at all

	// Of the pool's config.
	lifetime, jitter time.Duration
	prepareConn      func(context.Context, *pgx.Conn) (bool, error)
	afterRelease     func(*pgx.Conn) bool

	resent, lost atomic.Uint64 // see [Stats]

	few        int           // how many lanes reads use at least
	knownLimit int           // the shards of a connection past which it is replaced
	idleLimit  time.Duration // how long a lane may be idle
	period     time.Duration // how often that is looked at

	stopping sync.WaitGroup  // the goroutines that cancel groups
	open     context.Context // ends when the pool is closed
	shut     func()          // ends it

	mu           sync.Mutex             // guards what follows, and what lanes, requests and shards say that it guards
	all          []*lane                // as many as the pool may have connections
	waiting      []*Request             // for any lane, the first to come first
	turns        uint64                 // how many requests there were
	inflight     int                    // the requests under way
	load         float64                // the mean of that
	wanted       float64                // how many lanes reads should use, on the average
	reading      int                    // how many lanes reads use, the first of all
	sent         uint64                 // how many times requests were sent, together or not
	batches      uint64                 // how many times requests were sent down a lane together
	batched      uint64                 // how many requests these were
	sizes        [BatchLimit + 1]uint64 // at index n, how many times n requests were sent together; the last: or more
	timing       timing                 // of groups
	resendBudget float64                // how many late requests may be sent again now
	late         uint64                 // how many reads had a late group
	down         error                  // why no requests are taken for the time being, nil as long as they are
	closed       error                  // why there are no lanes any more, nil as long as there are
	ended        chan struct{}          // closed when all lanes are absent after close
	idleTimer    *time.Timer            // looks for lanes that have been idle for too long; nil while there are none
}

// Shard is a shard on a host, and its lanes.
type Shard struct {
	session.Shard
	pool *Pool
	gone atomic.Bool // it has gone to another host

	// Guarded by Pool.mu.
	inflight int     // the requests under way
	load     float64 // the mean of that
}

// laneState is what a lane is doing.
type laneState int

const (
	absent laneState = iota // it has no connection
	idle
	busy // it belongs to a caller, or to a goroutine that works for its queue
)

// lane is one connection, or the place for one, with the queue of the requests that wait for it.
type lane struct {
	*Pool

	// Guarded by Pool.mu.
	state    laneState
	queue    []*Request                 // that wait for this lane
	known    map[shards.Number]struct{} // shards for which the connection has worked
	slow     bool                       // it is a caller's, connects, or makes no progress: no request should wait for it
	opening  bool                       // it connects
	group    *group                     // that it works for
	watch    *time.Timer
	watching bool // the watch is running

	gathering bool // what waits in its queue is sent in a moment, see gather

	began uint64 // how many times the host's requests had been sent when its own were, the latest time

	progress     atomic.Int64 // counts what it gets done
	lastProgress int64        // of it, at the last look; guarded by Pool.mu

	// Whoever has the lane may use these.
	lease   *pgxpool.Conn // nil without a connection
	session *session.Session
	sending []sentRead // used again and again
	freed   time.Time  // when it was last given back
	expires time.Time  // when its connection is to be closed
}

// loadRequests is over how many requests the number of those under way is averaged.
const loadRequests = 32

// Primary returns what is known of the host's primary.
func (p *Pool) Primary() primary.Stats { return p.primary.Stats() }

// Wake has requests that wait for the host look whether their shards have left it.
func (p *Pool) Wake() { p.primary.Wake() }

// requestState is where a request is.
type requestState int

const (
	requestNew requestState = iota
	requestWaiting
	requestQueued
	requestSent // a lane works for it
	requestWoken
)

// Request waits for a lane, or for the answer to a single statement that is sent together with others.
type Request struct {
	ctx    context.Context
	shard  *Shard // nil for a lease of any lane
	lease  bool   // wants the lane itself; else an answer will do
	reads  bool   // is sent as a read, which the server holds it to
	resent bool   // was sent before, with others
	server string // of a replica: no other one may answer; any if empty

	hint *together.Hint // of the statements that its caller starts, with which it waits to be sent; nil for one by itself

	text *texts.Text
	sql  string
	args []any
	op   *tracers.Operation // nil without tracers
	left bool               // its caller has left while a lane worked for it; the lane reports to tracers

	// Guarded by Pool.mu.
	state    requestState
	queue    *lane  // in whose queue it waits
	turn     uint64 // the requests of a host in the order in which they came
	inflight bool   // counted among the requests under way
	opening  bool   // a lane connects, whose error it gets
	group    *group // that it was sent with

	arguments sync.Mutex  // held while args are read: they are the caller's again once it has left
	settled   atomic.Bool // it has an answer, or its caller has left; whichever comes first

	woken  chan struct{} // closed when what follows is there
	lane   *lane         // the caller's from then on
	answer *buffered.Answer
	err    error
}

// group are the requests that a lane works for together.
type group struct {
	lane     *lane
	requests []*Request
	callers  atomic.Int32               // how many still wait
	begun    atomic.Int64               // when, in Unix nanoseconds; 0 before
	current  atomic.Pointer[texts.Text] // that the server works for, as far as its answers tell

	late  atomic.Bool // it is cancelled: its callers send their requests again
	stuck bool        // guarded by Pool.mu: no caller waits for it, and the server makes no progress

	mu      sync.Mutex // guards what follows
	session *session.Session
	over    bool          // the lane has done what it can
	gaveUp  chan struct{} // not nil once no caller waits; closed when the lane is done
	quiet   chan error    // after that the error of the last cancel request
}

// sentRead is a request that is sent in a group.
type sentRead struct {
	*Request
	session.Read
	bare  bool  // its group went without an entry
	moved bool  // the path of the session was not its own
	last  error // with which it failed
}

const (
	// BatchLimit is how many requests are sent down a lane together.
	BatchLimit = 32
	// crowdLimit is how many are, of the statements that one caller starts together.
	crowdLimit = 256
)
