// Package sqldb gives a shard to code that wants a *sql.DB: ORMs, query builders, and what was written for
// database/sql.
//
//	db := sqldb.Open(shard)
//	defer db.Close()
//	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{})
//
// Unqualified names are those of the shard, as with the [router.Shard] itself, and the same model serves all shards.
//
// # No session
//
// What database/sql takes for a connection is here a note of which shard is meant. Each statement goes the way of
// [router.Shard.Exec] or [router.Shard.Query], and a transaction that of [router.Shard.BeginTx]: they take a connection
// from the router for as long as they last. So
//
//   - no search_path is left on any session, and whatever holds behind PgBouncer for the router holds here;
//   - thousands of handles share the router's connections. A handle that is not in use holds none, and its
//     SetMaxOpenConns only narrows what it may use of them at once;
//   - nothing has to be closed before the router is. Afterwards calls fail. Closing a handle ends the one goroutine that
//     database/sql runs for it;
//   - prepared statements are the router's, kept for each connection by shard and text. Prepare only notes the text:
//     what is wrong with it comes up when it is first run.
//
// What belongs to a session belongs in a transaction: SET LOCAL, advisory locks until its end, temporary tables that
// are dropped on commit. Two statements of a [sql.Conn] outside a transaction may run on two sessions.
//
// # As on pgx's stdlib
//
// Values come and go as they do with pgx's own package stdlib: an argument may be whatever pgx takes, options such as
// pgx.NamedArgs in front; results of types that database/sql does not know are strings in the form in which Postgres
// prints them. Isolation levels are those that Postgres has. There is no LastInsertId: use RETURNING. Errors wrap
// those of the shard, so that errors.As finds a shards.ShardError and a pgconn.PgError.
//
// Conn.Raw does not give a *stdlib.Conn. COPY, batches and large objects are methods of the shard.
package sqldb
