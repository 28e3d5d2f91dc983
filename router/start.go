package router

import (
	"context"
	"runtime"
	"slices"

	"github.com/jackc/pgx/v5"
)

// pending is a statement that is begun and whose answer is still to be taken.
type pending struct {
	shard    Shard
	call     *call
	answered <-chan bufferedAnswer // of a statement that cannot share a line; nil for others
	err      error
}

type bufferedAnswer struct {
	*answer
	err error
}

// start begins a statement on the shard without waiting for its answer. ctx governs all of it. Any number of statements
// may be begun before the first answer is taken, in whatever order: one whose answer is not taken yet holds nothing
// that another needs.
//
// That is why the rows are read into memory. Were they to hold their connections until somebody takes them, the one
// that is waited for could be waiting for a connection itself.
func (s Shard) start(ctx context.Context, sql string, args ...any) pending {
	h := s.home.host
	c := h.callFor(ctx, s.home, sql, args, false)
	if c.lease || c.text.refused() != nil {
		return s.startAlone(ctx, sql, args)
	}
	c.started, c.woken = true, make(chan struct{})
	if err := h.begin(c); err != nil {
		return pending{err: err}
	}
	return pending{shard: s, call: c}
}

// startAlone begins a statement that needs a line of its own.
func (s Shard) startAlone(ctx context.Context, sql string, args []any) pending {
	answered := make(chan bufferedAnswer, 1)
	go func() {
		var a *answer
		rows, err := s.Query(ctx, sql, args...)
		if err == nil {
			a, err = readRows(rows)
		}
		answered <- bufferedAnswer{a, err}
	}()
	return pending{shard: s, answered: answered}
}

// readRows reads rows to their end, and so gives their connection back.
func readRows(rows pgx.Rows) (*answer, error) {
	defer rows.Close()
	a := &answer{fields: slices.Clone(rows.FieldDescriptions())} // the connection uses them again
	for rows.Next() {
		a.add(rows.RawValues())
	}
	a.tag = rows.CommandTag()
	return a, rows.Err()
}

// wait returns the rows, which hold no connection. It must be called once. It blocks until the answer is there or the
// context of start has ended. An error that is a [shards.HostError] says that the statement was not sent.
func (p pending) wait() (pgx.Rows, error) {
	switch {
	case p.err != nil:
		return failedRows{p.err}, p.err
	case p.answered != nil:
		a := <-p.answered
		if a.err != nil {
			return failedRows{a.err}, a.err
		}
		return a.rows(context.Background(), p.shard.home), nil // all of it is there
	}
	home := p.shard.home
	if err := home.host.await(p.call); err != nil {
		return failedRows{err}, err
	}
	return p.call.answer.rows(p.call.ctx, home), nil
}

// begin finds a line for a call that nobody waits for yet.
func (h *host) begin(c *call) error {
	if err := c.ctx.Err(); err != nil {
		return h.failed(err)
	}
	l, err := h.lines.enter(c)
	if err != nil {
		return h.failed(err)
	}
	if l != nil {
		h.lines.mu.Lock()
		l.grant(c)
		h.lines.mu.Unlock()
	}
	return nil
}

// grant gives a line to a call: to its caller, or if that does not wait for it, to a goroutine. The caller holds mu.
func (l *line) grant(c *call) {
	if !c.started {
		c.wake(l, nil)
		return
	}
	c.state, c.queue = callQueued, l
	l.queue = append([]*call{c}, l.queue...)
	go func() {
		runtime.Gosched() // whoever begins one begins many
		l.mu.Lock()
		work := l.next()
		l.mu.Unlock()
		l.drive(work)
	}()
}
