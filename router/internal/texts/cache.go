package texts

import (
	"sync"
	"sync/atomic"
	"time"
)

// mostTexts is how many texts are kept before all are dropped: a program that builds its SQL has any number of them. An
// LRU would take a lock for each call.
const mostTexts = 4096

// LongText is the length of a text, in bytes, past which it is not kept.
const LongText = 16 << 10

// Cache holds the SQL texts that the shards of a host were given. It is safe for concurrent use.
type Cache struct {
	known atomic.Pointer[sync.Map] // of *Text by string
	count atomic.Int64
	tails atomic.Int64 // of all texts together, as in times
	trip  roundTrip
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

// RoundTrip returns the time of a round trip to the server, 0 if unknown.
func (c *Cache) RoundTrip() time.Duration { return time.Duration(c.trip.shortest.Load()) }
