package router

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/router/internal/tracers"

	"github.com/kiloshard/kiloshard/router/internal/session"
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
	ctx    context.Context
	home   *home  // nil for a lease of any line
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

// wake ends a call's wait with a line or an error. The caller holds lines.mu.
func (c *call) wake(l *line, err error) {
	c.state = callWoken
	c.line = l
	c.err = err
	close(c.woken)
}

// claim is for whoever is about to say how a call ends. It returns false if its caller has left, or somebody else was first.
func (c *call) claim() bool { return c.settled.CompareAndSwap(false, true) }

// publish ends the wait of a call that was claimed, with an answer or an error.
func (c *call) publish(a *session.Answer, err error) {
	c.answer, c.err = a, err
	c.group.callers.Add(-1)
	close(c.woken)
}

// scope is the one of the call's statement.
func (c *call) scope() session.Scope {
	sc := c.home.Scope()
	sc.Reads = sc.Reads || c.reads
	return sc
}

// fail ends a call that a line works for and that was not sent. Its caller, if there still is one, tells tracers unless it
// tries again. It may call tracers.
func (c *call) fail(err error) {
	if c.claim() {
		c.publish(nil, err)
	} else {
		c.op.Fail(err)
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

// awaitArguments waits until nobody reads the arguments any more.
func (c *call) awaitArguments() {
	c.arguments.Lock()
	defer c.arguments.Unlock()
}
