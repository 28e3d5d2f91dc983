package texts

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxTexts is the size of the cache. When the cache is full, Of drops all texts: a program that builds its SQL may have any
// number of them. An LRU would take a lock for each call.
const maxTexts = 4096

// LongText is the length limit of a cached text, in bytes.
const LongText = 16 << 10

// Cache caches the SQL texts of the statements of one host. It is safe for concurrent use.
type Cache struct {
	known atomic.Pointer[sync.Map] // of *Text by string
	count atomic.Int64
	tails atomic.Int64 // times.tails, but of all texts together
	trip  roundTrip
	of    *Cache // of the host, for a replica; else nil
}

// NewCache returns an empty cache. That of a replica is given the cache of its host, which knows what the catalog says.
func NewCache(of *Cache) *Cache {
	c := &Cache{of: of}
	c.known.Store(&sync.Map{})
	return c
}

// Of returns the Text of an SQL text. It does not allocate if the text is cached.
func (c *Cache) Of(sql string) *Text {
	known := c.known.Load()
	if found, ok := known.Load(sql); ok {
		return found.(*Text)
	}
	if len(sql) > LongText {
		return c.make(sql)
	}
	if c.count.Add(1) > maxTexts {
		known = &sync.Map{}
		c.known.Store(known)
		c.count.Store(1)
	}
	found, _ := known.LoadOrStore(sql, c.make(sql))
	return found.(*Text)
}

func (c *Cache) make(sql string) *Text {
	t := newText(sql)
	if c.of != nil {
		t.verdict = c.of.Of(sql).verdict
	}
	return t
}

// RoundTrip returns the time of a round trip to the server, 0 if unknown.
func (c *Cache) RoundTrip() time.Duration { return time.Duration(c.trip.shortest.Load()) }
