// Package mapstore keeps the versioned map of a cluster: in a file, in a control Postgres database, or in etcd.
//
// A [Store] holds one document, a config as in kiloshard.yaml, and its history: the author, time and reason of each
// version. Only [Store.Swap] changes it, by a compare-and-swap on the version: of several changes to one version one
// wins, and the others get a [ConflictError]. [shards.CheckChange] decides whether a map may follow another, and a
// [Checker] checks a change without making it. No store keeps a password: a DSN holds variables such as
// ${PG_A_PASSWORD}, which each reader expands, or leaves the password to a .pgpass or service file.
//
// # A file
//
// The document is kiloshard.yaml itself. Its history is a directory beside it: kiloshard.yaml.history/000007.yaml is
// version 7, with a first line for the author, time and reason. Swap replaces the file as a whole, and keeps the
// comments and lines of the top-level fields that do not change. It holds a lock that ends with its process; a process
// that is killed has made all of the change or nothing. An editor takes no lock. A save before Swap replaces the file
// becomes a version of its own, and Swap returns a [ConflictError]; a save at the very moment of the replacement is
// lost.
//
// An edit by hand makes the next version. While the store is watched, each edit enters the history by "hand" once the
// file has not changed for a moment. An edit that is not a map, or may not follow the last one, is an error, and the
// last map stays in use. If the history cannot be written, as on a read-only mount, each edit must raise the field
// version.
//
// The lock is local to this machine: a file on a network must have one writer.
//
// # Postgres
//
// The documents are rows of the table kiloshard.maps in a control database, which the first Swap creates. A row never
// changes, and the version that it follows is unique. A commit notifies watchers. All watchers of a store share one
// connection, which listens, and also polls, so that it works behind a pooler that loses notifications.
//
// If the answer to a Swap is lost, the Swap is sent again under the same name until the limit, so that a server that was
// killed and is back reports its outcome.
//
// The login is read again for each connection, as package connect describes.
//
// # Etcd
//
// Under /kiloshard/<cluster>/, or another prefix, the key map holds the current version, and history/<version> each
// version. One transaction writes both, if the key map has not changed. Watch uses etcd's own. If the answer to a Swap
// is lost, the Swap is sent again until the limit, as with Postgres. It needs etcd 3.4 or later.
//
// # For a service
//
// A router gets its maps from a [Source]. It keeps a copy of the last one, to start from while the store is down.
//
// # Inside
//
// Each store is an internal package that keeps versions of a text and knows nothing of watchers: filestore, pgstore and
// etcdstore. This package makes maps of the texts, and passes one store's changes to many watchers. Only filestore
// parses maps itself, since people edit its file.
package mapstore
