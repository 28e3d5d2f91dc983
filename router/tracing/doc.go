// Package tracing makes OpenTelemetry spans of what a service asks of its shards.
//
//	r, err := router.New(ctx, router.Config{
//		Map:     theMap,
//		Tracers: []pgx.QueryTracer{tracing.New(tracing.Config{TracerProvider: provider})},
//	})
//
// There is one span for each statement of the service, each batch and each CopyFrom, and for BEGIN, COMMIT, ROLLBACK and
// savepoints; none for what the router sends by itself, such as a search_path, a prepare or a ping. Its parent is the span
// of the context that the statement was given, also where statements of several callers were sent together. It begins
// when the service asks, so that waiting for a connection is part of it, and ends with the answer, or when the rows are
// closed. What was not sent, for want of a connection, has a span too. A trace that is not sampled costs no span at all.
//
// # Attributes
//
// They follow OpenTelemetry's conventions for PostgreSQL, version 1.43:
//
//	db.system.name              postgresql
//	db.namespace                database and schema: photos|shard_00042
//	db.query.summary            SELECT photos; also the span's name
//	db.operation.batch.size     queries of a batch, from two on
//	db.query.text               if Config.QueryText is set
//	db.query.parameter.<n>      if Config.Arguments is set; of a batch never
//	db.response.status_code     SQLSTATE of an error
//	error.type                  the same, or a class of operation.Classify
//	server.address, server.port of the host's DSN, if that has one address; if it has several, instead of these
//	network.peer.address, .port where the connection leads to, unless it is a socket file or nothing was sent
//	kiloshard.shard             number of the shard
//	kiloshard.host              name of its host
//	kiloshard.schema            its schema
//	kiloshard.kind              tx, batch or copy, of what is no statement by itself
//	kiloshard.waited            seconds until there was a connection, unless it was there at once
//	kiloshard.together          statements that went down the connection together, from two on
//	kiloshard.resent            how many more times it was sent, if it was
//	kiloshard.attempt           which attempt of router.Retry it is part of, from the second on
//
// The server's message is not among them, since it may quote an argument: a span's status says the class of the error.
package tracing
