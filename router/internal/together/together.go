// Package together lets package many tell the router which statements a caller sends at once, so that the router sends
// those of one host together, and package objects that a transaction begins and ends with its statements.
package together

import "sync"

// Crowd is statements that one caller sends at once.
type Crowd struct{ underway sync.WaitGroup }

// Join adds a statement to the crowd. All join before the first is sent.
func (c *Crowd) Join() *Hint {
	c.underway.Add(1)
	return &Hint{crowd: c}
}

// Hint is the first argument of a statement of a crowd.
type Hint struct {
	crowd *Crowd
	once  sync.Once
}

// Arrive reports that the statement is in a queue, or will not get there. It may be called more than once.
func (h *Hint) Arrive() { h.once.Do(h.crowd.underway.Done) }

// AwaitAll waits until all statements of the crowd have arrived.
func (h *Hint) AwaitAll() { h.crowd.underway.Wait() }

// Of returns the hint among the arguments of a statement, and nil if there is none.
func Of(args []any) *Hint {
	if len(args) == 0 {
		return nil
	}
	hint, _ := args[0].(*Hint)
	return hint
}
