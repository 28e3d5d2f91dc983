package conns

import (
	"github.com/kiloshard/kiloshard/router/internal/session"
)

// wake ends a call's wait with a line or an error. The caller holds lines.mu.
func (c *Request) wake(l *line, err error) {
	c.state = callWoken
	c.line = l
	c.err = err
	close(c.woken)
}

// claim is for whoever is about to say how a call ends. It returns false if its caller has left, or somebody else was first.
func (c *Request) claim() bool { return c.settled.CompareAndSwap(false, true) }

// publish ends the wait of a call that was claimed, with an answer or an error.
func (c *Request) publish(a *session.Answer, err error) {
	c.answer, c.err = a, err
	c.group.callers.Add(-1)
	close(c.woken)
}

// scope is the one of the call's statement.
func (c *Request) scope() session.Scope {
	sc := c.shard.Scope()
	sc.Reads = sc.Reads || c.reads
	return sc
}

// fail ends a call that a line works for and that was not sent. Its caller, if there still is one, tells tracers unless it
// tries again. It may call tracers.
func (c *Request) fail(err error) {
	if c.claim() {
		c.publish(nil, err)
	} else {
		c.op.Fail(err)
	}
}

// abandoned follows up on a call whose caller has left while a line works for it.
func (c *Request) abandoned() {
	c.arguments.Lock() // waits until they are no longer read
	defer c.arguments.Unlock()
	if c.group.callers.Add(-1) == 0 {
		c.group.giveUp()
	}
}

// awaitArguments waits until nobody reads the arguments any more.
func (c *Request) awaitArguments() {
	c.arguments.Lock()
	defer c.arguments.Unlock()
}
