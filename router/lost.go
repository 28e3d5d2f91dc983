package router

import "github.com/kiloshard/kiloshard/router/internal/failure"

// ErrLost says that a connection was lost after a statement was sent and before its answer came: the statement may have
// taken effect or not, and only its data can tell. Of a statement in a transaction that was not committed it is known:
// it has not.
var ErrLost = failure.ErrLost
