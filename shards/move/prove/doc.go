// Package prove has only tests: of moves whose movers, hosts and control databases are killed, cut off from each other, or
// full, with real servers and while services write.
package prove
