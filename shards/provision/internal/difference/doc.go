// Package difference has the differences between a host and a map: their kinds, and lists of them.
package difference
