// Package replicate streams the writes of a shard to its target while the move copies the rows: by a publication and a slot on the source, and a subscription
// on the target.
package replicate

import (
	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Stream is the logical replication of one move. Its sessions are used by one goroutine at a time.
type Stream struct {
	ledger.Move // whose Slot names the publication, the slot and the subscription

	SourceHost, TargetHost shards.Host
	From, To               *pgx.Conn // sessions to them
	Limits                 wait.Limits
	Login                  Login
}

// Login is how the target logs in to the source.
type Login struct {
	Settings     string // keywords and values of libpq, which change those of the source's DSN
	WithPassword bool   // with the password of the source's DSN
}
