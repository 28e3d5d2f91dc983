// Package together passes hints to the router, in contexts. Package many marks statements that a caller sends at once, so that
// the router sends those of one host together. Package objects marks transactions whose BEGIN and COMMIT travel with their
// statements.
package together

import (
	"context"
	"sync"
)

// Crowd is a set of statements that one caller sends at once.
type Crowd struct{ underway sync.WaitGroup }

// Join adds a statement to the crowd. Call it for all statements before you send the first.
func (c *Crowd) Join() *Hint {
	c.underway.Add(1)
	return &Hint{crowd: c}
}

// Hint marks a statement of a crowd.
type Hint struct {
	crowd *Crowd
	once  sync.Once
}

// Arrive records that the statement is in a queue, or will never be. It may be called more than once.
func (h *Hint) Arrive() { h.once.Do(h.crowd.underway.Done) }

// AwaitAll waits until all statements of the crowd have arrived.
func (h *Hint) AwaitAll() { h.crowd.underway.Wait() }

type hintKey struct{}

// With returns a context for the Query of a statement of a crowd. Without a hint the Query is one by itself.
func With(ctx context.Context, hint *Hint) context.Context {
	return context.WithValue(ctx, hintKey{}, hint)
}

// Of returns the hint in a context, or nil if there is none.
func Of(ctx context.Context) *Hint {
	hint, _ := ctx.Value(hintKey{}).(*Hint)
	return hint
}
