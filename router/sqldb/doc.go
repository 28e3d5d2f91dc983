// Package sqldb gives a shard to code that wants a *sql.DB: ORMs, query builders, and what was written for
// database/sql.
//
//	db := sqldb.Open(shard)
//	defer db.Close()
//	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{})
//
// Unqualified names are those of the shard, as with the [router.Shard] itself, and the same model serves all shards.
//
// Each statement is a [router.Shard.Exec] or [router.Shard.Query], and a transaction a [router.Shard.BeginTx]: they take a
// connection from the router for as long as they last. A handle that is idle holds none, so that thousands of handles share
// the router's connections. Nothing has to be closed before the router is; afterwards calls fail.
//
// # Where it differs from pgx's stdlib
//
//   - There is no session. A [sql.Conn] is a note of which shard is meant: two statements of it outside a transaction may
//     run on two sessions. What belongs to a session belongs in a transaction: SET LOCAL, advisory locks until its end,
//     temporary tables that are dropped on commit. Where a session is needed, make a *sql.DB by stdlib.OpenDBFromPool of a
//     pool by [router.Shard.PoolConfig].
//   - SetMaxOpenConns limits what a handle may use of the router's connections at once, and [sql.DBStats] count notes, not
//     connections: [router.Router.Stats] has those.
//   - Conn.Raw does not give a *stdlib.Conn. COPY, batches and large objects are methods of the shard.
//   - Prepare sends nothing: an error in the text shows when the statement is first run. The router prepares statements
//     on each connection by shard and text.
//   - A query runs until its first row before Query returns, so that its error is that of Query, not of Rows.
//   - pgx.QueryExecModeSimpleProtocol as an argument is taken for QueryExecModeExec. LISTEN, and what refuses to run in a
//     transaction block, fail.
//   - A type of a shard's own, such as an enum, has no name in ColumnTypes but its OID, which differs between shards.
//
// The rest is as there: an argument may be anything that pgx takes, options such as pgx.NamedArgs in front; results of
// types that database/sql does not know are strings in the form in which Postgres prints them. There is no LastInsertId:
// use RETURNING. Errors wrap those of the shard, so that errors.As finds a shards.ShardError and a pgconn.PgError.
package sqldb
