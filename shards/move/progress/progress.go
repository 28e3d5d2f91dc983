// Package progress has the events that a program which moves shards receives meanwhile.
package progress

import (
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Event is something that happens in a move.
type Event struct {
	Shard shards.Number
	Split shards.Set // all shards that leave the host, of a promotion; empty for a move
	From  string     // the host that the shard leaves
	To    string     // the host that it moves to
	Step  ledger.Step
	Kind  Kind
	What  string        // the event as text, such as "waits for a lock of process 12, active"
	Bytes int64         // that are copied so far, of Total; 0 for other events
	Total int64         // bytes
	Left  time.Duration // until all is copied, at the speed so far; 0 if that is unknown
	Lag   time.Duration // that the target was behind; 0 for other events

	Waited time.Duration // that writers have waited for locks that are released; 0 for other events
}

// Kind is the kind of an event, for programs. Its value is the text of events that say no more.
type Kind string

// The kinds of events that people should see: what holds a move up, and how it ends.
const (
	Note        Kind = "note"           // something to know, or to do
	Waiting     Kind = "waits"          // for a lock, a transaction, a host, or the store
	Retrying    Kind = "tries again"    // a cutover, or a promotion, after an error
	Recomparing Kind = "compares again" // the structures, which were changed
	TooLarge    Kind = "too large"      // to compare its last writes under the fence
	WayBack     Kind = "way back"       // it is closed, or its host does not answer
	Done        Kind = "done"           // the shard is on its new host
	Aborted     Kind = "aborted"        // the shard stays
)

// The kinds of the other events, in the order of a move.
const (
	Begun         Kind = "begun" // a step, or the move
	Made          Kind = "made"  // the shard, without rows
	Granted       Kind = "granted"
	Identified    Kind = "identified" // tables without a key
	Published     Kind = "published"
	SlotMade      Kind = "slot made"
	Subscribed    Kind = "subscribed"
	Copying       Kind = "copying"
	Copied        Kind = "copied"
	MakesKeys     Kind = "makes keys and indexes"
	Committing    Kind = "committing"
	Behind        Kind = "behind"
	CaughtUp      Kind = "caught up"
	WayBackMade   Kind = "way back made"
	Refreshed     Kind = "refreshed"
	Comparing     Kind = "comparing"
	Compared      Kind = "compared"
	ComparedLast  Kind = "compared the last changes"
	Locked        Kind = "locked"
	Marked        Kind = "marked" // the target has all that was written before the locks
	CopiedLarge   Kind = "copied large objects"
	Carried       Kind = "carried"  // sequences
	Released      Kind = "released" // the locks
	StoreFailed   Kind = "store"    // the change of the map is tried again
	Reopened      Kind = "reopened" // the old host, by a rollback
	Switched      Kind = "switched"
	Unfenced      Kind = "unfenced"
	Unsubscribed  Kind = "unsubscribed"
	Unpublished   Kind = "unpublished"
	FencesMade    Kind = "fences made"
	Fenced        Kind = "fenced"
	Replayed      Kind = "replayed"
	Promoted      Kind = "promoted"
	FencesDropped Kind = "fences dropped"
	CopiesFenced  Kind = "copies fenced"
)
