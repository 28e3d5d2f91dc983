// Package localpg has Postgres servers on this machine, thrown away afterwards: for the demo, the benchmarks and tests.
//
// # Where a server comes from
//
// [Start] takes the first of four sources that is available:
//
//  1. [DSN]: a server that the caller already has. Only databases are created on it, and dropped by [Server.Stop].
//  2. [Local]: server binaries on this machine, version 15 or later; of several the newest.
//  3. [Docker]: a container, by way of testcontainers-go.
//  4. [Download]: a build fetched by embedded-postgres. It stays in the user's cache for the next time.
//
// A source that the caller names, and a DSN that the caller gives, is the only one tried. If none is available, the
// error is one line that says what was tried and what to install.
//
// # Durability
//
// A server from [Local] or [Download] runs with Postgres's own fsync=on. One from [Docker] runs with fsync=off, which
// is what the Postgres module of testcontainers-go starts it with; never quote timings of durable writes from it, or
// set fsync to on in [Config].Settings.
//
// # Life
//
// A server of [Local] or [Download] is a child of this process in a session of its own: Ctrl-C in a terminal reaches
// only this process, which stops the server itself. On Linux the kernel shuts the server down when this process dies
// in whatever way. The files that then remain are removed by the next [Start] with the same [Config].Dir: a file lock
// that the owner had is free, and so is one that every process of the server inherits. Where the server outlives its
// owner, as it may elsewhere than on Linux, that Start shuts the server down first, and a later one removes the files. A
// container is removed by testcontainers' reaper, unless that is turned off. With [Config].Keep nothing is tied and
// nothing is removed.
//
// # initdb
//
// initdb runs once for each build of Postgres. Its result stays in the user's cache, and each server gets a copy of it, with a
// system identifier and a password of its own.
//
// # Backups
//
// [Server.Backup] copies a server that runs; from the copy starts a standby of it, or a server that recovers from a WAL
// archive. Such a server is like one from [Start] in all else.
//
// # PgBouncer
//
// [StartPgBouncer] puts a PgBouncer of this machine in front of a server, in transaction mode unless told otherwise.
//
// # Rights
//
// Postgres does not run as root. Started by root, initdb and the server run as the user postgres, or nobody if there
// is no such user. The server listens on 127.0.0.1 only and has no Unix socket; its one role is postgres, a superuser
// with a random password, which Postgres stores with one iteration of SCRAM and that is handed over in a file or the environment and is in no argument list, log or error. A
// standby has its primary's password in a file of its data directory, which only the server's user can read.
package localpg
