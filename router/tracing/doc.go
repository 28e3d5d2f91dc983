// Package tracing makes OpenTelemetry spans for the statements that a service sends to its shards.
//
//	r, err := router.New(ctx, router.Config{
//		Map:     theMap,
//		Tracers: []pgx.QueryTracer{tracing.New(tracing.Config{TracerProvider: provider})},
//	})
//
// Each statement of the service has a span, and so has each batch, each CopyFrom, and each BEGIN, COMMIT, ROLLBACK and savepoint.
// What the router sends by itself has none, such as an entry, a prepare or a ping. The parent is the span in the context of the
// call, even if statements of several callers are sent together. The span begins with the call, so it includes the wait for a
// connection. It ends with the answer, or when the rows are closed. A statement that was not sent, because there was no
// connection, has a span, too. A trace that is not sampled makes no spans.
//
// # Attributes
//
// They follow OpenTelemetry's conventions for PostgreSQL, version 1.43:
//
//	db.system.name              postgresql
//	db.namespace                database and schema: photos|shard_00042
//	db.query.summary            SELECT photos; also the span's name
//	db.operation.batch.size     queries of a batch, if more than one
//	db.query.text               if Config.QueryText is set
//	db.query.parameter.<n>      if Config.Arguments is set; never for a batch
//	db.response.status_code     SQLSTATE of an error
//	error.type                  the same, or a class of operation.Classify
//	server.address, .port       of the host's DSN, if it has one address
//	network.peer.address, .port of the server, if the DSN has several; none for a socket file, or if nothing was sent
//	kiloshard.shard             number of the shard
//	kiloshard.host              name of its host
//	kiloshard.schema            its schema
//	kiloshard.kind              tx, batch or copy, unless it is a single statement
//	kiloshard.waited            seconds until there was a connection, if the call had to wait
//	kiloshard.together          number of statements that were sent together, if more than one
//	kiloshard.resent            how many times it was sent again, if any
//	kiloshard.attempt           the attempt of router.Retry, from the second on
//
// The server's message is left out, because it may quote an argument. The status of the span has the class of the error.
package tracing
