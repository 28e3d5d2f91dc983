// Package pgstore keeps the maps of clusters in the table kiloshard.maps of a control database, which the first Swap
// creates. A version is one row, which never changes, and the version that it follows is unique: one of several changes
// to the same version wins.
//
// A role that only reads needs usage of the schema kiloshard and select on the table. Follow uses one connection of its
// own; the other methods use up to maxConns, which are closed when idle.
package pgstore
