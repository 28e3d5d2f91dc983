// Package prove has only tests: of a router whose hosts are killed, frozen, cut off, promoted and demoted, with real servers
// and their standbys.
package prove
