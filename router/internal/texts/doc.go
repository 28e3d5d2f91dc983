// Package texts stores what a router learns about SQL texts, from their words and from how long the server takes for them.
// Only speed depends on it, never safety: the server itself refuses writes in a statement that was sent as a read.
package texts
