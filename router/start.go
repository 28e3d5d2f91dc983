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
	ctx      context.Context // the caller's
	call     *call
	answered <-chan bufferedAnswer // of a statement that cannot share a line; nil for others
	turns    uint64                // see tries
}

type bufferedAnswer struct {
	*answer
	home *home // that answered
	err  error
}

// start begins a statement on the shard without waiting for its answer. ctx governs all of it. Any number of statements
// may be begun before the first answer is taken, in whatever order: one whose answer is not taken yet holds nothing
// that another needs.
//
// That is why the rows are read into memory. Were they to hold their connections until somebody takes them, the one
// that is waited for could be waiting for a connection itself.
func (s Shard) start(ctx context.Context, sql string, args ...any) pending {
	for {
		home := s.home.now()
		c := home.host.callFor(ctx, home, sql, args, false)
		if c.lease || c.text.refused() != nil || !home.host.watch.passing.Load() {
			return s.startAlone(ctx, sql, args)
		}
		turns := home.host.watch.turns.Load()
		c.started, c.woken = true, make(chan struct{})
		err := home.host.begin(c)
		switch {
		case retired(err):
			continue
		case err != nil:
			return s.startAlone(ctx, sql, args) // which tries again if that may help
		}
		return pending{shard: s, ctx: ctx, call: c, turns: turns}
	}
}

// startAlone begins a statement that needs a line of its own.
func (s Shard) startAlone(ctx context.Context, sql string, args []any) pending {
	answered := make(chan bufferedAnswer, 1)
	go func() {
		answer := bufferedAnswer{}
		rows, err := s.Query(ctx, sql, args...)
		if err == nil {
			answer.home = homeOf(rows)
			answer.answer, err = readRows(rows)
		}
		answer.err = err
		answered <- answer
	}()
	return pending{shard: s, answered: answered}
}

// start begins a statement as [Shard.start] does, wherever the reader finds the shard.
func (r Reader) start(ctx context.Context, sql string, args []any) pending {
	answered := make(chan bufferedAnswer, 1)
	go func() {
		answer := bufferedAnswer{}
		rows, err := r.Query(ctx, sql, args...)
		if err == nil {
			answer.home = homeOf(rows)
			answer.answer, err = readRows(rows)
		}
		answer.err = err
		answered <- answer
	}()
	return pending{shard: r.shard, answered: answered}
}

// homeOf returns the home that rows come from.
func homeOf(all pgx.Rows) *home {
	switch all := all.(type) {
	case *rows:
		return all.home
	case *answerRows:
		return all.home
	case *endedRows:
		return homeOf(all.Rows)
	}
	panic("bug: rows of no shard")
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
	if p.answered != nil {
		a := <-p.answered
		if a.err != nil {
			return failedRows{a.err}, a.err
		}
		return a.rows(context.Background(), a.home), nil // all of it is there
	}
	c := p.call
	err := c.home.host.await(c)
	switch {
	case retired(err):
		return p.shard.Query(p.ctx, c.sql, c.args...)
	case err != nil:
		t := tries{turns: p.turns}
		again, err := c.again(c.ctx, &t, err)
		if again {
			return p.shard.queryAgain(p.ctx, &t, c.sql, c.args)
		}
		return failedRows{err}, err
	}
	return c.answer.rows(c.ctx, c.home), nil
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
