// Package inventory joins the kinds of objects: all that a map wants on its hosts, and all that a host has. The packages
// of single kinds, such as shardschema and extensions, do not know each other.
package inventory
