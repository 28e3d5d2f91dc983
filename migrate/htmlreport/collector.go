package htmlreport

import (
	"maps"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// Collector collects the events of one run. Its zero value is ready to use, and it is safe for concurrent use.
type Collector struct {
	mu   sync.Mutex // guards seen
	seen map[shards.Number]seen
}

// seen is the events' data of one shard.
type seen struct {
	from, to int32
	took     time.Duration
	retries  int
	ended    bool // ShardDone or ShardFailed was received; else from, to and took are unset
}

// Event adds one event. Set it as the migrate.Config.Events of the run.
func (c *Collector) Event(e migrate.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen[e.Shard]
	switch e.Kind {
	case migrate.ShardDone, migrate.ShardFailed:
		s.from, s.to, s.took, s.ended = e.From, e.To, e.Took, true
	case migrate.ShardRetry:
		s.retries++
	default:
		return
	}
	if c.seen == nil {
		c.seen = map[shards.Number]seen{}
	}
	c.seen[e.Shard] = s
}

func (c *Collector) snapshot() map[shards.Number]seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}
