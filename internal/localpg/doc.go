// Package localpg runs temporary Postgres servers on this machine, for the demo, the benchmarks and tests.
//
// # Sources
//
// [Start] takes the first of four sources that is available:
//
//  1. [DSN]: a server that the caller already has. Only databases are created on it, and dropped by [Server.Stop].
//  2. [Local]: the newest server binaries on this machine, of version 15 or later.
//  3. [Docker]: a container, by way of testcontainers-go.
//  4. [Download]: a build that embedded-postgres downloads. It stays in the user's cache.
//
// If the caller names a source or gives a DSN, Start tries no other source. If no source is available, the error is one line
// that says what was tried and what to install.
//
// # Durability
//
// A server from [Local] or [Download] runs with fsync=on, Postgres's default. The Postgres module of testcontainers-go starts
// one from [Docker] with fsync=off: never quote timings of durable writes from it, or set fsync to on in [Config].Settings.
//
// # Life
//
// A server from [Local] or [Download] is a child of this process in its own session: Ctrl-C in a terminal reaches
// only this process, which stops the server. On Linux the kernel shuts the server down if this process dies. The next [Start]
// with the same [Config].Dir removes the files that remain: it finds that nobody holds the file lock of the owner, nor the one
// that all processes of the server inherit. On other systems a server may outlive its owner. Start then shuts it down, and a
// later Start removes the files. The reaper of testcontainers-go removes containers, unless it is turned off. With
// [Config].Keep nothing ends with this process and nothing is removed.
//
// # Rights
//
// Postgres refuses to run as root. If this process is root, initdb and the server run as the user postgres, or nobody if that
// does not exist. The server listens on 127.0.0.1 only and has no Unix socket. Its only role is postgres, a superuser
// with a random password, which Postgres stores with one iteration of SCRAM. The password is passed in a file or in the
// environment; it is in no argument list, log or error. A standby has its primary's password in a file of its data directory,
// which only the server's user can read.
package localpg
