// Package provision creates the shards of a map on their hosts, and reports how hosts differ from the map.
//
// [Create] first connects to every host and reads its content. If a host does not answer, or contradicts the map,
// Create changes nothing anywhere. Then it installs the helper schema on hosts that do not have it, and creates missing
// shards: many schemas in one transaction and one round trip, several transactions at a time on each host. A
// transaction creates all its shards or none. If Create is interrupted, or a host fails, another Create continues. On a
// complete cluster it changes nothing.
//
// [Verify] compares every shard with the map and returns each [Difference]. It changes nothing.
//
// Sessions use the DSNs of the map and the credentials of [shards.Map.WithCredentials], as package connect describes.
//
// The packages under internal have one topic each, and none imports package provision. At the bottom, package session
// runs scripts, and package catalog reads Postgres's catalogs. Above them is a package for each kind of objects, such
// as shardschema, generators or extensions: it finds the objects of a map and of a host, and compares or creates them.
// Package inventory collects all kinds, install creates missing and old objects, and verify compares.
package provision
