package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// failoverLoad are the callers of two hosts.
type failoverLoad struct {
	router  *router.Router
	pause   time.Duration
	callers [2][]*failoverCaller // by host
	stop    context.CancelFunc
	running sync.WaitGroup
}

// failoverCaller makes one call after another, without a time limit, to the shards of one host.
type failoverCaller struct {
	writes bool

	mu    sync.Mutex // guards what follows
	calls []failoverCall
	ids   []ledgerEntry
}

// failoverCall is one call.
type failoverCall struct {
	began, ended time.Time
	err          error
}

// ledgerEntry is a write that was acknowledged, or whose result is unknown.
type ledgerEntry struct {
	shard shards.Number
	id    int64
	acked bool
}

func startFailoverLoad(r *router.Router, callers int, pause time.Duration) *failoverLoad {
	ctx, stop := context.WithCancel(context.Background())
	l := &failoverLoad{router: r, pause: pause, stop: stop}
	for host := range l.callers {
		for n := range callers {
			c := &failoverCaller{writes: n%2 == 0}
			l.callers[host] = append(l.callers[host], c)
			l.running.Go(func() { l.run(ctx, c, host, n) })
		}
	}
	return l
}

// end stops the callers and waits until their calls have ended.
func (l *failoverLoad) end() {
	l.stop()
	l.running.Wait()
}

// run makes calls until ctx ends. ctx does not cancel the calls.
func (l *failoverLoad) run(ctx context.Context, c *failoverCaller, host, n int) {
	for i := int64(1); ctx.Err() == nil; i++ {
		number := shards.Number(host*failoverShards + int(i)%failoverShards)
		shard, err := l.router.ForShard(number)
		if err != nil {
			panic("bug: " + err.Error())
		}
		id := int64(n+1)<<40 | i
		for {
			call := failoverCall{began: time.Now()}
			if c.writes {
				_, call.err = shard.Exec(context.Background(), `insert into ledger values ($1)`, id)
			} else {
				var zero int64
				call.err = shard.QueryRow(context.Background(), `select id from ledger where id = $1`, 0).Scan(&zero)
			}
			call.ended = time.Now()
			again := call.err != nil && router.SafeToRetry(call.err) && ctx.Err() == nil
			c.note(call, ledgerEntry{number, id, call.err == nil}, !again && (call.err == nil || !router.SafeToRetry(call.err)))
			_ = pause(ctx, l.pause)
			if !again {
				break
			}
		}
	}
}

func (c *failoverCaller) note(call failoverCall, entry ledgerEntry, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	if c.writes && keep {
		c.ids = append(c.ids, entry)
	}
}

// callsOf returns the calls to a host that pick selects.
func (l *failoverLoad) callsOf(host int, pick func(c *failoverCaller, call failoverCall) bool) (calls []failoverCall) {
	for _, c := range l.callers[host] {
		c.mu.Lock()
		for _, call := range c.calls {
			if pick(c, call) {
				calls = append(calls, call)
			}
		}
		c.mu.Unlock()
	}
	return calls
}

// served waits until a host has acknowledged a write that began after the given time, and returns when it did.
func (l *failoverLoad) served(ctx context.Context, host int, after time.Time) (time.Time, error) {
	for {
		calls := l.callsOf(host, func(c *failoverCaller, call failoverCall) bool {
			return c.writes && call.err == nil && call.ended.After(after)
		})
		if len(calls) > 0 {
			first := slices.MinFunc(calls, func(a, b failoverCall) int { return a.ended.Compare(b.ended) })
			return first.ended, nil
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
}

// otherKind precedes the text of an error that a failover does not explain.
const otherKind = "other: "

// kindOf returns the kind of an error, in a few words.
func kindOf(err error) string {
	switch {
	case errors.Is(err, router.ErrHostDown):
		return "host is down, not sent"
	case errors.Is(err, router.ErrLost):
		return "connection lost, may have run"
	case router.SafeToRetry(err):
		return "not sent"
	}
	return otherKind + err.Error()
}

// p99Of returns the 99th percentile of the calls' durations, in milliseconds; 0 without calls.
func p99Of(calls []failoverCall) float64 {
	var took []float64
	for _, call := range calls {
		took = append(took, float64(call.ended.Sub(call.began).Microseconds())/1000)
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(len(took)*99/100, len(took)-1)]
}
