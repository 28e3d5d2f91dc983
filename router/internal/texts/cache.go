package texts

import (
	"sync"
	"sync/atomic"
	"time"
)

// mostTexts is the number of texts past which all are forgotten: a program that makes its SQL up as it goes along has no
// end of them. An LRU would take a lock for each call.
const mostTexts = 4096

// LongText is the length of a text, in bytes, past which it is not kept.
const LongText = 16 << 10

// Cache holds the SQL texts that the shards of a host were given. It is safe for concurrent use.
type Cache struct {
	known atomic.Pointer[sync.Map] // of *Text by string
	count atomic.Int64
	tails atomic.Int64 // of all together, as of each
	way   way
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	c := &Cache{}
	c.known.Store(&sync.Map{})
	return c
}

// Of returns what is known of an SQL text. It does not allocate for one that is known.
func (c *Cache) Of(sql string) *Text {
	known := c.known.Load()
	if found, ok := known.Load(sql); ok {
		return found.(*Text)
	}
	if len(sql) > LongText {
		return newText(sql)
	}
	if c.count.Add(1) > mostTexts {
		known = &sync.Map{}
		c.known.Store(known)
		c.count.Store(1)
	}
	found, _ := known.LoadOrStore(sql, newText(sql))
	return found.(*Text)
}

// RoundTrip returns how long the way to the server and back is, 0 if unknown.
func (c *Cache) RoundTrip() time.Duration { return time.Duration(c.way.shortest.Load()) }
