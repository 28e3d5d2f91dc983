// Package replica measures how far the replicas of a host are behind their primary, and chooses the one to read from.
//
// A [Set] records the primary's WAL position and the time at short intervals. A replica that has replayed a recorded
// position has everything that was visible at that time. Each server has its own connection for measurements. The set
// connects and measures from the first read until a while after the last one.
//
// A replica's DSN may lead to several servers: it may have several addresses, a name with several addresses, or a proxy.
// So each measurement is valid for one server only ([Choice.Server]). On any other server a read asks in its own
// transaction how far that server has replayed ([Set.Ask], or [GuardColumns] in the caller's statement). [Set.Check] then
// decides whether that is enough.
package replica
