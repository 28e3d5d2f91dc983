// Package connect makes the connections of all other packages: the router, create, verify and migrations agree on what a
// DSN means, which credentials count, how long connecting may take, and how errors read.
//
// # Passwords
//
// A password comes from the first of these that has one:
//
//  1. the function of [shards.Host.WithCredentials], such as [Command.Credentials]
//  2. the DSN, in which ${NAME} stands for a variable
//  3. a service, service=NAME in the DSN, from ~/.pg_service.conf or servicefile=FILE
//  4. PGPASSWORD
//  5. ~/.pgpass, PGPASSFILE, or passfile=FILE in the DSN
//
// All of them are read again for each connection, and so are certificate files. If a DSN has several addresses, the
// function is called and the passfile is searched for each of them, once a server there accepts the connection, and the
// result is sent only to that address; connect_timeout includes the call. The DSN's password and PGPASSWORD are for all
// addresses. A service's password is for all of them too, unless the DSN is from a store: then it is only for the addresses
// that the service names.
//
// # Rotation
//
// A role has one password at a time. Give clients the new one before the server:
//
//  1. put the new password into the first source of the list above that is in use
//  2. ALTER ROLE app PASSWORD '…'
//
// If the server refuses a pool's new credentials, the pool tries the last accepted ones before it fails; see [Login.Try].
// So programs keep running between the two steps, and open connections stay valid. A program that starts in between
// has no earlier password, and fails until the second step is done. To avoid that, alternate between two roles, both
// members of the one that owns the tables: give the other one a new password, and then change user and password together.
//
// A server may ask for the password itself, or for an MD5 hash of it, instead of a proof that the client knows it. Connect
// refuses that, since an impostor at the address would get the password. The exceptions: TLS verifies the server and the DSN is
// not from a store, or the DSN or [shards.Store.Local] has require_auth=password, or md5.
//
// # Limits
//
// A server may send 1,000 messages of 4 MiB together before it is ready, and as much in answer to the check of its identity. It may
// ask for 200,000 iterations of SCRAM. Connecting to an address that exceeded a limit of the login fails at once, with the same
// error, but for one connection a second. More than 16,384 iterations are computed for one connection of a pool at a time, in a
// quarter of the time at most.
//
// # Identity
//
// Each connection to a host of a map first reads kiloshard.settings. If the database belongs to another cluster,
// or has another epoch, layout or schema prefix, or if keys have other shards by its strategy than by the map's, the error is an
// [IdentityError], and no other statement is sent.
// A database whose encoding is not UTF8 is an [EncodingError]. If another session has locked that table, it waits up to [LockWait], unless the session has a lock_timeout, and then
// names the holder.
//
// # TLS
//
// The DSN configures TLS as for libpq: sslmode=verify-full with sslrootcert=FILE refuses a server whose certificate is not
// signed by this CA or not for the name in the DSN; sslcert and sslkey are the client's certificate. Relative file names are
// resolved in the config's directory; see [shards.Load].
//
// Libpq's default is another one: if neither the DSN nor its service nor PGSSLMODE has an sslmode, that is verify-full for all addresses,
// unless each of them is localhost, a loopback address or a Unix socket. To those a connection is encrypted if the server supports
// it, and nothing is verified.
//
// # Secrets
//
// Neither an [Error] nor the errors that it wraps contain a password, even if a server echoes one, or pgx keeps one in
// the config of its own error.
package connect
