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
	ShardRetry  EventKind = "retry"  // Shard, Host, Attempt, Err, Blockers: it is tried again since a lock was not free in time

	// Interrupted says that no other shard is begun, and ShardWaits of one that is under way what it waits for, then or when that takes long: Shard,
	// Host, Blockers.
	Interrupted EventKind = "interrupted"
	ShardWaits  EventKind = "waits"

	// FileResumed says that a file marked "tern: disable-tx" was begun before: Shard, Host, File, Statement.
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
	From, To  int32 // the versions between which it moved; equal when it did not
	Took      time.Duration
	File      string
	Statement int // with which it goes on, from 1; with 1 it starts again, since it was changed
	Attempt   int // how often it was tried before, from 1
	Err       error
	Blockers  string // which sessions hold locks in the shard, and their statements, as far as can be seen
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
