// Package sqldb makes a *sql.DB of a shard, for ORMs, query builders and other code for database/sql.
//
//	db := sqldb.Open(shard)
//	defer db.Close()
//	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{})
//
// Unqualified names resolve in the shard, as with the [router.Shard] itself. One model serves all shards.
//
// Each statement is a [router.Shard.Exec] or [router.Shard.Query], and each transaction a [router.Shard.BeginTx]. It uses one of
// the router's connections until it ends. An idle handle uses none, so thousands of handles share the router's connections.
// Handles need not be closed before the router. After the router's Close, their calls fail.
//
// # Where it differs from pgx's stdlib
//
//   - There is no session. A [sql.Conn] only names a shard: outside a transaction, two of its statements may run on two
//     sessions. Do what needs a session in a transaction: SET LOCAL, advisory locks until its end, temporary tables that are
//     dropped on commit. For a real session, use stdlib.OpenDBFromPool with a pool made of [router.Shard.PoolConfig].
//   - SetMaxOpenConns limits how many of the router's connections a handle uses at once. [sql.DBStats] does not count
//     connections: see [router.Router.Stats].
//   - Conn.Raw does not give a *stdlib.Conn. COPY, batches and large objects are methods of the shard.
//   - Prepare sends nothing, so an error in the text appears when the statement first runs. The router prepares statements
//     on each connection, by shard and text.
//   - Query returns when the first row is there, so an error of the query comes from Query, not from Rows.
//   - The argument pgx.QueryExecModeSimpleProtocol has the effect of QueryExecModeExec. LISTEN, and statements that cannot run in
//     a transaction block, fail.
//   - ColumnTypes has no name for a type of the shard's schema, such as an enum. It has the OID, which differs between shards.
//
// The rest is the same: an argument may be anything that pgx accepts, after options such as pgx.NamedArgs. Results of types that
// database/sql does not know are strings, as Postgres prints them. There is no LastInsertId: use RETURNING. Errors wrap those of
// the shard, so errors.As finds a shards.ShardError and a pgconn.PgError.
package sqldb
