package move

// LockWait is how long a move waits for a shard's lock.
var LockWait = &lockWait
