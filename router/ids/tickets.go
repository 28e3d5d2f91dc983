package ids

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// TicketServer is one of the servers that [Tickets] takes turns with.
type TicketServer struct {
	Name string
	DB   Querier
}

// TicketsConfig says which servers [NewTickets] uses and how.
type TicketsConfig struct {
	Servers  []TicketServer // each makes other numbers than the rest
	Function string         // the SQL function that makes n IDs, with its schema: kiloshard.next_photo_ids

	// Timeout is how long a server may take for a call before the next one is asked. Defaults to 1 s.
	Timeout time.Duration
	// Retry is how long a server that failed is left alone before it is tried again, beside the calls. Defaults to 1 s.
	Retry time.Duration
	// Logger logs when a server fails and when it is back. Nil logs nothing.
	Logger *slog.Logger
}

// Tickets are Flickr's ticket servers: each call goes to the next server in turn. A server that fails, for whatever
// reason, is left out until it answers again, and the call goes on with the next one; so callers see no error while one
// server is left. It is safe for concurrent use.
//
// See "Ticket Servers: Distributed Unique Primary Keys on the Cheap", code.flickr.net, 2010.
type Tickets struct {
	cfg       TicketsConfig
	functions []*Function[shards.ID] // by server

	mu   sync.Mutex // guards what follows
	turn int        // index of the server whose turn it is
	down []bool     // by server

	closed context.Context // ends with Close, and with it the probes
	end    context.CancelFunc
	probes sync.WaitGroup
}

// NewTickets returns a client of the servers. It does not connect. The caller must Close it.
func NewTickets(cfg TicketsConfig) *Tickets {
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Second
	}
	if cfg.Retry <= 0 {
		cfg.Retry = time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Tickets{cfg: cfg, down: make([]bool, len(cfg.Servers))}
	t.turn = rand.IntN(max(1, len(cfg.Servers))) // services that start together do not all begin with the same server
	for _, server := range cfg.Servers {
		t.functions = append(t.functions, newFunction[shards.ID](server.DB, cfg.Function))
	}
	t.closed, t.end = context.WithCancel(context.Background())
	return t
}

// Close ends the tries to reach servers that failed, and waits for their end. The servers' pools are the caller's.
func (t *Tickets) Close() {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.probes.Wait()
}

// NextIDs returns n IDs of one server, in rising order. When no server answers, the error joins a [shards.HostError] for
// each. Servers known to be down are asked only if no other is left.
func (t *Tickets) NextIDs(ctx context.Context, n int) ([]shards.ID, error) {
	if err := checkCount(n); err != nil {
		return nil, err
	}
	var errs []error
	for _, i := range t.order() {
		ids, err := t.ask(ctx, i, n)
		if err == nil {
			return ids, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err() // it is the caller who left
		}
		errs = append(errs, &shards.HostError{Host: t.cfg.Servers[i].Name, Err: err})
		t.failed(i, err)
	}
	return nil, errors.Join(errs...)
}

func (t *Tickets) ask(ctx context.Context, i, n int) ([]shards.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	return t.functions[i].NextIDs(ctx, n)
}

// order returns all servers in the order in which a call asks them, and passes the turn on.
func (t *Tickets) order() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	servers := len(t.functions)
	up, down := make([]int, 0, servers), []int(nil)
	for k := range servers {
		if i := (t.turn + k) % servers; t.down[i] {
			down = append(down, i)
		} else {
			up = append(up, i)
		}
	}
	t.turn = (t.turn + 1) % servers
	return append(up, down...)
}

// failed leaves a server out, and begins to look for its return.
func (t *Tickets) failed(i int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.down[i] || t.closed.Err() != nil {
		return
	}
	t.down[i] = true
	t.cfg.Logger.Warn("ticket server failed", slog.String("server", t.cfg.Servers[i].Name), slog.Any("error", err))
	t.probes.Go(func() { t.probe(i) })
}

// probe tries a server until it answers. A try draws one ID, so that it shows all that a call needs.
func (t *Tickets) probe(i int) {
	for {
		select {
		case <-t.closed.Done():
			return
		case <-time.After(t.cfg.Retry):
		}
		if _, err := t.ask(t.closed, i, 1); err == nil {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.down[i] = false
	t.cfg.Logger.Info("ticket server is back", slog.String("server", t.cfg.Servers[i].Name))
}
