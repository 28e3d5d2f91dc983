package router

import (
	"math"

	"github.com/jackc/pgx/v5/pgconn"
)

// read takes an answer off the wire, which has been waited for since then. Of one that is long the caller gets the first
// part at once, and the line is its own until it has taken the others.
func (l *line) read(result *pgconn.ResultReader, c *sentCall) (*answer, error) {
	fields := c.fields(result)
	size := answerPart
	if c.started {
		size = math.MaxInt
	}
	a, whole := readPart(result, fields, size)
	if whole {
		var err error
		a.tag, err = result.Close()
		return a, err
	}
	a.more, a.quit = make(chan *answer), make(chan struct{})
	if !c.settle(a, nil) {
		close(a.quit)
	}
	l.hold()
	defer close(a.more)
	for !whole {
		var part *answer
		if part, whole = readPart(result, fields, answerPart); whole {
			part.tag, part.err = result.Close()
		}
		select {
		case a.more <- part:
		case <-a.quit:
		}
		if part.err != nil {
			return a, part.err
		}
	}
	return a, nil
}

// readPart reads rows until there are none left, or enough for one part.
func readPart(result *pgconn.ResultReader, fields []pgconn.FieldDescription, size int) (a *answer, whole bool) {
	a = &answer{fields: fields}
	for len(a.bytes) < size {
		if !result.NextRow() {
			return a, true
		}
		a.add(result.Values())
	}
	return a, false
}

// hold sends those away who wait for the line: what it does will take long.
func (l *line) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = true
	l.scatter()
}
