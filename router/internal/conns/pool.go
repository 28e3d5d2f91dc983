package conns

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/primary"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// Pool is the connections of one host, and who uses them. pgxpool makes the connections and ends them; which of them a
// shard's work goes to is decided here.
//
// A shard has its lines: those that have worked for it, know its tables and keep its statements prepared. Its work goes
// to one of them, and if they are busy it waits in a line's queue rather than teach it to another line. A shard that has
// had more under way than it has lines, on the average of its last few dozen calls, gets another one.
type Pool struct {
	*session.Host
	pool      *pgxpool.Pool
	login     *connect.Login
	primary   *primary.Watch
	awaitMove func(context.Context, *Shard) bool
	alone     bool // every statement is sent by itself
	shares    bool // calls may share a connection at all

	// Of the pool's config.
	lifetime, jitter time.Duration
	prepareConn      func(context.Context, *pgx.Conn) (bool, error)
	afterRelease     func(*pgx.Conn) bool

	resent, lost atomic.Uint64 // see [connStats]

	few        int           // how many lines are used at least in a crowd
	knownLimit int           // the shards of a connection past which it is replaced
	room       int           // for how many shards a line is meant
	spare      int           // how many it may have before shards of other lines wait for those
	idleLimit  time.Duration // how long a line may be idle
	period     time.Duration // how often that is looked at

	stopping sync.WaitGroup // what has servers stop

	mu       sync.Mutex             // guards what follows, and what lines, calls and homes say that it guards
	all      []*line                // as many as the pool may have connections
	waiting  []*Request             // for any line, the first to come first
	turns    uint64                 // how many calls there were
	inflight int                    // the calls under way
	load     float64                // the mean of that
	sent     uint64                 // how many times calls were sent, together or not
	batches  uint64                 // how many times calls were sent down a line together
	batched  uint64                 // how many calls these were
	sizes    [BatchLimit + 1]uint64 // at index n, how many times n calls were sent together
	timing   timing                 // of groups
	twice    float64                // how many calls may be asked for twice, see late.go
	down     error                  // why no calls are taken for the time being, nil as long as they are
	closed   error                  // why there are no lines any more, nil as long as there are
	ended    chan struct{}          // closed when all lines are absent after close
	later    *time.Timer            // looks for lines that have been idle for too long; nil while there are none
}

// Shard is a shard on a host, and its lines.
type Shard struct {
	session.Shard
	conns *Pool
	gone  atomic.Bool // it has gone to another host

	// Guarded by lines.mu.
	own      []*line // that have worked for it
	inflight int     // the calls under way
	load     float64 // the mean of that
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
	*Pool

	// Guarded by lines.mu.
	state  lineState
	queue  []*Request                 // that wait for this line
	shards []*Shard                   // that have this line among theirs
	known  map[shards.Number]struct{} // shards for which the connection has worked
	slow   bool                       // what it does takes long: nobody should wait for it
	group  *group                     // that it works for
	watch  *time.Timer
	armed  bool // the watch is running

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

// Primary returns what is known of the host's primary.
func (ls *Pool) Primary() primary.Stats { return ls.primary.Stats() }

// Wake has calls that wait for the host look whether their shards have left it.
func (ls *Pool) Wake() { ls.primary.Wake() }

// callState is where a call is.
type callState int

const (
	callNew callState = iota
	callWaiting
	callQueued
	callSent // a line works for it
	callWoken
)

// Request is one wish for a line: for the line itself, or for the answer to a single statement.
type Request struct {
	ctx    context.Context
	shard  *Shard // nil for a lease of any line
	lease  bool   // wants the line itself; else an answer will do
	slow   bool   // will take long, as far as is known
	reads  bool   // is sent as a read, which the server holds it to
	resent bool   // was sent before, with others
	server string // of a replica: no other one may answer; any if empty

	hint *together.Hint // of the statements that its caller starts, with which it waits to be sent; nil for one by itself

	text *texts.Text
	sql  string
	args []any
	op   *tracers.Operation // nil if nobody is told of it
	left bool               // its caller has left while a line was at work for it, which tells tracers

	// Guarded by lines.mu.
	state    callState
	queue    *line  // in whose queue it waits
	turn     uint64 // the calls of a host in the order in which they came
	inflight bool   // counted among the calls under way
	group    *group // that it was sent with

	arguments sync.Mutex  // held while args are read: they are the caller's again once it has left
	settled   atomic.Bool // it has an answer, or its caller has left; whichever comes first
	late      atomic.Bool // its caller asks again, and has its operation

	woken  chan struct{} // closed when what follows is there
	line   *line         // the caller's from then on
	answer *session.Answer
	err    error
}

// group are the calls that a line works for together.
type group struct {
	line    *line
	calls   []*Request
	callers atomic.Int32               // who still wait
	begun   atomic.Int64               // when, in Unix nanoseconds; 0 before
	current atomic.Pointer[texts.Text] // that the server works for, as far as its answers tell

	stuck bool // guarded by lines.mu: nobody waits for it, and the server does not get on with it

	mu     sync.Mutex // guards what follows
	conn   *pgconn.PgConn
	over   bool          // the line has done what it can
	gaveUp chan struct{} // not nil when nobody waits any more; closed when the line is done
}

// sentCall is a call with what is needed to send it.
type sentCall struct {
	*Request
	session.Read
	moved bool  // the path of the session was not its own
	last  error // with which it failed
}

const (
	// BatchLimit is how many calls are sent down a line together.
	BatchLimit = 32
)
