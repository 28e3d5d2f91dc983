package move

import "github.com/kiloshard/kiloshard/shards/move/internal/claim"

// LockWait is how long a move waits for a shard's lock.
var LockWait = &claim.Wait
