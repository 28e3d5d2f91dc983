// Package mapstore keeps the versioned map of a cluster: in a file, in a control Postgres database, or in etcd.
//
// A [Store] holds one document, a config as it is written in kiloshard.yaml, and its history: who changed it, when and
// why. It changes by [Store.Swap] alone, a compare-and-swap on the version: of those who change the same version one
// wins, and the others get a [ConflictError]. Whether a map may follow another is for [shards.CheckChange] to say, and
// no store keeps a password: a DSN holds variables such as ${PG_A_PASSWORD}, which each reader fills in for itself, or
// leaves the password to a .pgpass or service file.
//
// # A file
//
// The document is kiloshard.yaml itself, and its history a directory beside it: kiloshard.yaml.history/000007.yaml is
// version 7, with a first line that says who, when and why. Swap replaces the file as a whole, leaves the comments of
// those lines that it does not change, and holds a lock that goes with its process; a process that is killed in the
// midst of it has done all or nothing. An editor knows no lock: what it saves while Swap is at work is the next version
// after Swap's. (On file systems that cannot exchange two files in one step, there is a moment in which it is lost.)
//
// An edit by hand makes the next version. While somebody watches, each edit is one, and is put into the
// history by "hand" once it has been still for a moment; an edit that is no map, or may not follow the last one, is an
// error, and the last map goes on. Where the history cannot be written, as in a directory that is mounted for reading,
// each edit must raise the field version, or nobody could tell it from the last.
//
// The lock is one of this machine: a file on a network has one writer.
//
// # Postgres
//
// The documents are rows of kiloshard.maps in a control database, which the first Swap makes. A version is one row that
// is never changed, and what it follows is unique. A commit notifies; Watch listens on one connection, however many
// watch, and asks every now and then besides, so that it works behind a pooler that loses notifications.
//
// When the answer to a Swap is lost it is sent again under the same name until the limit, so that a server which was
// killed and is back tells what became of it.
//
// The login is read again for each connection, as package connect has it.
//
// # Etcd
//
// Under /kiloshard/<cluster>/, or another prefix, the key map holds the present version, and history/<version> each
// version. One transaction makes both, if the key map is still what it was. Watch goes by etcd's own. When the answer to a
// Swap is lost it is sent again until the limit, as with Postgres. It takes etcd 3.4 or later.
//
// # For a service
//
// [Source] is what a router has its maps from. It keeps a copy of the last one, to start from while the store is down.
package mapstore
