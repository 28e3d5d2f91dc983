// Package provision makes the shards of a map exist on their hosts, and reports where hosts and map
// differ.
//
// [Create] first connects to every host and looks at what is there; when a host does not answer,
// or holds something that contradicts the map, it changes nothing anywhere. Then it installs the
// helper schema where it is not installed yet, and creates the shards that are missing: many
// schemas in one transaction and one round trip, several transactions at a time on each host. A
// batch of shards exists wholly or not at all, so a Create that was interrupted, or whose host went
// away, is taken up by running it again. Run on a complete cluster it changes nothing.
//
// [Verify] compares every shard with the map and names each [Difference]. It changes nothing.
//
// Sessions are opened as package connect has it: by the DSNs of the map, and with the credentials of
// [shards.Map.WithCredentials].
package provision
