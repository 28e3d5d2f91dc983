// Package replica knows how far the replicas of a host are behind their primary, and which one reads.
//
// The position of the primary's log is recorded with the time, at short intervals. A replica that has replayed a recorded
// position has everything that was visible at that time. Each server has its own connection for this. Measuring, and
// connecting, starts with the first read, and ends a while after the last one.
//
// A replica is what a DSN leads to, which may be several servers: several addresses, a name with several, a proxy. So each
// measurement belongs to one server ([Choice.Server]) and is valid for that one only. On any other server a read asks in its
// own transaction how far that has replayed ([Set.Ask], or [GuardColumns] in the caller's statement), and [Set.Check] says
// whether that is enough.
package replica
