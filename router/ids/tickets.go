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

// TicketServer is one server of [Tickets].
type TicketServer struct {
	Name string
	DB   Querier
}

// TicketsConfig is the config of [NewTickets].
type TicketsConfig struct {
	Servers  []TicketServer // no two make the same numbers
	Function string         // the SQL function that makes n IDs, with its schema: kiloshard.next_photo_ids

	// Timeout is how long a server may take before the call goes to the next one. Defaults to 1 s.
	Timeout time.Duration
	// Retry is the pause between two probes of a server that failed. Calls do not wait for probes. Defaults to 1 s.
	Retry time.Duration
	// Logger logs when a server fails and when it is back. Nil logs nothing.
	Logger *slog.Logger
}

// Tickets are Flickr's ticket servers: the servers take turns. If a server fails, the call goes to the next one, and later calls
// leave the server out until it answers a probe. So callers see no error while one server is up. Tickets are safe for concurrent
// use.
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

// NewTickets returns a client of ticket servers. It does not connect. The caller must Close it.
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
	t.turn = rand.IntN(max(1, len(cfg.Servers))) // so services that start together begin with different servers
	for _, server := range cfg.Servers {
		t.functions = append(t.functions, newFunction[shards.ID](server.DB, cfg.Function))
	}
	t.closed, t.end = context.WithCancel(context.Background())
	return t
}

// Close ends the probes and waits for them. It does not close the pools of the servers.
func (t *Tickets) Close() {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.probes.Wait()
}

// NextIDs returns n IDs of one server, in rising order. It tries servers that are down last. If no server answers, the error
// joins a [shards.HostError] for each.
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
			return nil, ctx.Err() // the call was cancelled, the server has not failed
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

// order returns all servers in the order in which a call tries them, and advances the turn.
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

// failed marks a server as down and starts to probe it.
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

// probe calls a server until it answers. Each probe takes one ID, so it tests all that a call needs.
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
