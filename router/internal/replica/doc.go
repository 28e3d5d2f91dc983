// Package replica knows how far the replicas of a host are behind their primary, and which one reads.
//
// The position of the primary's log is noted with the time, again and again. A replica that has replayed as far as a noted
// position has all that was visible at that time. Each server has a connection of its own for this; nothing is measured,
// and no connection made, before somebody wants to read, and a while after the last read the measuring ends.
//
// A replica is what a DSN leads to, which may be several servers: several addresses, a name with several, a proxy. So each
// measurement says which server it was made on ([Choice.Server]), and holds for that one only. On any other server a read asks in its own transaction
// how far that is ([Set.Ask], or [GuardColumns] in a statement of the caller's), and [Set.Check] says whether the answer will do.
package replica
