package migrate

import (
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of [Event].
const (
	PhaseBegan  EventKind = "phase"  // Phase
	ShardDone   EventKind = "done"   // Shard, Host, From, To, Took
	ShardFailed EventKind = "failed" // Shard, Host, From, To, Took, Err
	ShardRetry  EventKind = "retry"  // Shard, Host, Attempt, Err, Blockers: a lock was not free in time, or a file collided with others, so the shard is retried

	// Interrupted says that no further shard starts. ShardWaits says what a shard under way waits for, after an interrupt or
	// a long wait: Shard, Host, Blockers.
	Interrupted EventKind = "interrupted"
	ShardWaits  EventKind = "waits"

	// FileResumed says that an earlier run began a file marked "tern: disable-tx": Shard, Host, File, Statement.
	FileResumed EventKind = "resumed"
)

// Event is something that happened in a run.
type Event struct {
	Kind      EventKind
	Run       string // the run's name in the ledger
	Time      time.Time
	Phase     string // "canary", "all hosts", or the hosts of a wave
	Host      string
	Shard     shards.Number
	From, To  int32 // versions before and after; equal if nothing was done
	Took      time.Duration
	File      string
	Statement int // 1-based, where it continues; 1 if it starts again because the file was changed
	Attempt   int // number of attempts so far, from 1
	Err       error
	Blockers  string // the sessions that hold locks in the shard, and their statements, as far as the role may see them
}

// events passes events on, one at a time.
type events struct {
	run string
	to  func(Event) // nil for nobody

	mu sync.Mutex // held for the length of a call
}

func (e *events) send(event Event) {
	if e.to == nil {
		return
	}
	event.Run, event.Time = e.run, time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.to(event)
}
