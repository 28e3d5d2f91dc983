// Package ledger is the ledger of moves: a row for each move on each of its two hosts, which says at which step the move is.
//
// The ledger is on the hosts and not beside the map, because the transaction that fences the source also writes the step: at no moment is
// a shard fenced without a row that says so.
package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// Move is a row of the ledger on the host that a shard leaves.
type Move struct {
	ID      string
	Shard   shards.Number
	Schema  string
	Source  string // names of hosts
	Target  string
	Step    Step
	Outcome Outcome
	Who     string
	Began   time.Time
	Stepped time.Time  // when the step was begun
	Fenced  *time.Time // when the source began to refuse
	Error   string     // of the last attempt
	Offline bool       // the shard is copied while it is locked
	Back    *WayBack   // of a move that can be rolled back; nil for others
	Returns string     // the ID of the move that this one rolls back; empty for others
	Split   string     // the ID that the moves of one [Promote] share; empty for others
	Working bool       // a mover works on it, as move.Status found
}

// Slot is the name of the publication, the subscription and the slot.
func (m Move) Slot() string { return fmt.Sprintf("kiloshard_move_%05d_%s", m.Shard, m.ID) }

// OldSchema is the name of the schema on the source after the move.
func (m Move) OldSchema() string { return m.Schema + "__moved_" + m.ID }

// FenceSchema is the name of the fence before it takes the place of the shard.
func (m Move) FenceSchema() string { return m.Schema + "__fence_" + m.ID }

// Turn is the lock of the shard, which migrations and movers take.
func (m Move) Turn() sql.ShardTurn { return sql.ShardTurn{Shard: int(m.Shard), Schema: m.Schema} }

// NewID returns the ID of a new move: 8 hexadecimal digits.
func NewID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
