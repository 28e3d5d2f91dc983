package router

import (
	"context"
	"sync"
	"sync/atomic"
)

// callState is where a call is.
type callState int

const (
	callNew callState = iota
	callWaiting
	callQueued
	callSent // a line works for it
	callWoken
)

// call is one wish for a line: for the line itself, or for the answer to a single statement.
type call struct {
	ctx   context.Context
	home  *home // nil for a lease of any line
	lease bool  // wants the line itself; else an answer will do
	slow  bool  // will take long, as far as is known

	// Nobody waits yet for one that is started: its answer is read into memory, however long it is.
	started bool

	text *text
	sql  string
	args []any
	op   *operation // nil if nobody is told of it
	left bool       // its caller has left while a line was at work for it, which tells tracers

	// Guarded by lines.mu.
	state    callState
	queue    *line  // in whose queue it waits
	turn     uint64 // the calls of a host in the order in which they came
	inflight bool   // counted among the calls under way
	group    *group // that it was sent with
	tries    int    // how often it could not be sent

	arguments sync.Mutex  // held while args are read: they are the caller's again once it has left
	settled   atomic.Bool // it has an answer, or its caller has left; whichever comes first

	woken    chan struct{} // closed when what follows is there
	line     *line         // the caller's from then on
	answer   *answer
	err      error
	panicked any // what a method of the arguments panicked with
}

// wake ends a call's wait with a line or an error. The caller holds lines.mu.
func (c *call) wake(l *line, err error) {
	c.state = callWoken
	c.line = l
	c.err = err
	close(c.woken)
}

// settle ends a call's wait with an answer or an error. It returns false if the caller has left, or has been given the
// first part of its answer already.
func (c *call) settle(a *answer, err error) bool {
	if !c.settled.CompareAndSwap(false, true) {
		return false
	}
	c.answer, c.err = a, err
	c.group.callers.Add(-1)
	close(c.woken)
	return true
}

// fail is settle for a call that a line works for and that was not sent. Its caller, if there still is one, tells tracers
// unless it tries again. It may call tracers.
func (c *call) fail(err error) {
	if !c.settle(nil, err) {
		c.op.fail(err)
	}
}

// abandoned follows up on a call whose caller has left while a line works for it.
func (c *call) abandoned() {
	c.arguments.Lock() // waits until they are no longer read
	defer c.arguments.Unlock()
	if c.group.callers.Add(-1) == 0 {
		c.group.giveUp()
	}
}
