// Package connect makes the connections of all other packages: what a DSN means, who logs in, how long it may take, and
// what is said when it fails are the same for the router, for create and verify, and for migrations.
//
// # Passwords
//
// Where a password comes from, the first that has one:
//
//  1. the function of [shards.Host.WithCredentials], such as [Command.Credentials]
//  2. the DSN, in which ${NAME} stands for a variable
//  3. a service, service=NAME in the DSN, from ~/.pg_service.conf or servicefile=FILE
//  4. PGPASSWORD
//  5. ~/.pgpass, PGPASSFILE, or passfile=FILE in the DSN
//
// All of them are read again for each connection. So are the files of certificates. Where a DSN has several addresses, the
// function is called and the passfile is searched for each of them, once a server there accepts the connection, and what is
// found is sent to that address alone; connect_timeout includes the call. The DSN's password and PGPASSWORD are for all of
// them. A service's password is for all of them too, but where the DSN is out of a store: there it is for the addresses that
// the service names.
//
// # Rotation
//
// A role has one password at a time, and who knows the new one can be told before or after the server. Before is right:
//
//  1. put the new password where the first item of the list above takes it from
//  2. ALTER ROLE app PASSWORD '…'
//
// A pool whose new credentials are refused tries those that were accepted last before it fails; see [Login.Try].
// So between the two steps all goes on, and connections that are there stay valid. A program that is started in between
// knows no earlier password, and fails until the second step is done. Where that must not be, use two roles in turn, both
// members of the one that owns the tables: give the other one a new password, and then change user and password together.
//
// A server may ask for the password itself, as against a proof that the client has it. That is refused, since whoever sits at
// an address then has it, save where TLS verifies the server and the DSN is not out of a store, or where require_auth in
// the DSN, or in [shards.Store.Local], says otherwise: require_auth=password.
//
// # Identity
//
// Each connection to a host of a map begins with a look at kiloshard.settings: a database that belongs to another cluster,
// or has another epoch, layout or schema prefix, is an [IdentityError], and nothing else is sent to it.
// Whoever has locked that table is waited for for [LockWait], unless the session has a lock_timeout, and then named.
//
// # TLS
//
// The DSN says it, as for libpq: sslmode=verify-full with sslrootcert=FILE refuses a server whose certificate is not of
// this CA or not for the name in the DSN; sslcert and sslkey are the client's certificate. Without an sslmode a connection
// is encrypted if the server can do it, and nothing is verified. Relative names of files are beside the config; see
// [shards.Load].
//
// # Secrets
//
// An [Error] has no password in it, nor has what it unwraps to: not where a server sends back what it was sent, and not
// in the config that pgx keeps in its own error.
package connect
