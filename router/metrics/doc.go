// Package metrics exports the figures of a router to Prometheus.
//
//	recorder := metrics.New(metrics.Config{})
//	r, err := router.New(ctx, router.Config{Map: theMap, Tracers: []pgx.QueryTracer{recorder}})
//	…
//	prometheus.MustRegister(recorder.Collector(r))
//
// All series have the label cluster. Series of a host have the label host, and end when the host leaves the map.
// Series of a replica also have the label replica, which is its index in the map, from 0. No series has a label for the shard:
// thousands of shards make no more series than one.
//
//	kiloshard_router_operation_seconds         histogram, by kind (read, write, tx, batch, copy): from the call to its
//	                                           answer, with waiting; each call of a transaction counts
//	kiloshard_router_wait_seconds              histogram: the part of it until there was a connection
//	kiloshard_router_fanout_seconds            histogram, by kind (each, collect, merge, getmany, stream), not by host:
//	                                           work over many shards, until the last has answered
//	kiloshard_router_fanouts_incomplete_total  by kind: such work that was not done on all its shards
//	kiloshard_router_batch_size                histogram: how many calls were sent together after a wait for a connection
//	kiloshard_router_errors_total              by class: the first two characters of the SQLSTATE, or a class of
//	                                           operation.Classify, such as unreachable or timeout
//	kiloshard_router_calls_total               single statements, batches and transactions
//	kiloshard_router_entered_total             groups, and statements and batches by themselves, behind an entry
//	kiloshard_router_kept_total                those without one, since the session had kept the shard's path
//	kiloshard_router_resent_total              calls that were sent again
//	kiloshard_router_lost_total                calls whose answers were lost with a connection
//	kiloshard_router_retries_total             transactions that router.Retry ran again
//	kiloshard_router_retries_exhausted_total   transactions that router.Retry gave up
//	kiloshard_router_connections               by state: idle or busy
//	kiloshard_router_connections_max           limit of open connections
//	kiloshard_router_waiting_calls             calls that wait for a connection
//	kiloshard_router_pooler                    1 if a pooler is between the router and the server
//	kiloshard_router_breaker                   by state (closed, open, half-open): 1 for the present one, else 0
//	kiloshard_router_down_seconds              how long the host has been down; 0 if it is up
//	kiloshard_router_role_changes_total        how many times another of its addresses became the primary
//	kiloshard_router_rival_primaries           other addresses that take writes as well: the host has several primaries
//	kiloshard_router_primary_info              1, by the address to which calls go; none while no primary is known
//	kiloshard_router_shards                    shards that the map puts on the host
//	kiloshard_router_reads_on_primary_total    reads for which no replica qualified; this and the next
//	                                           eight only for hosts with replicas
//	kiloshard_router_hedged_reads_total        reads that were sent to a second server
//	kiloshard_router_hedges_won_total          hedged reads that the second server answered first
//	kiloshard_router_replicas_measured         1 while the replicas are measured, which is while there are reads
//	kiloshard_router_replica_usable            1 if readers with the default MaxLag may use it; while measured
//	kiloshard_router_replica_lag_seconds       upper limit of how old the data is that a read sees; while
//	                                           measured, if known
//	kiloshard_router_replica_reads_total       reads that were sent to it
//	kiloshard_router_replica_failed_total       reads sent to it that another server had to answer
//	kiloshard_router_replica_connections       open connections to it
//	kiloshard_router_map_version               version of the map that the router uses
//	kiloshard_router_map_changes_total         how many times the router has changed its map
//	kiloshard_router_map_changed_timestamp_seconds
//	                                           when it changed its map last
//	kiloshard_router_map_stale                 1 if the map may be out of date: see router.MapState.Err
//	kiloshard_router_map_stale_timestamp_seconds
//	                                           since when; none if the map is not known to be out of date
//	kiloshard_router_directory_entries         entries in the cache; this and the next two only with a directory
//	kiloshard_router_directory_hits_total      lookups that found the entry in the cache
//	kiloshard_router_directory_misses_total    lookups that did not
//
// [Leads] queries the hosts. Register it in one service of a cluster:
//
//	kiloshard_router_sequences_leading         sequences that lead the clock by more than a second, because the clock
//	                                           was set back
//	kiloshard_router_sequence_lead_seconds     by sequence: the largest lead; none if no sequence leads
//	kiloshard_router_sequences_unknown         1 if the host does not answer
//
// [Cleaner] has the figures of a cleaner of package router/entities, and queries the shards for its lag:
//
//	kiloshard_router_entities_repaired_total   entities whose index rows it has repaired
//	kiloshard_router_entities_filled_total     entities that were read to fill an index
//	kiloshard_router_entities_compared_total   entities that were compared with their index rows
//	kiloshard_router_entity_index_rows_checked_total
//	                                           index rows that were compared with their entities
//	kiloshard_router_entity_index_rows_added_total
//	kiloshard_router_entity_index_rows_removed_total
//	kiloshard_router_entities_taken_total      entities without a row in a unique index, because another entity has it
//	kiloshard_router_entity_work_waiting       writes whose index rows a cleaner has yet to write
//	kiloshard_router_entity_work_lag_seconds   how long the oldest of them has been due
//	kiloshard_router_entity_work_ahead_seconds how far one of them is in the future: the clock of a host has stepped back
//	kiloshard_router_entity_work_unknown       1 if a shard does not answer
//
// Observing an operation takes a fraction of a microsecond, no lock and no allocation. The other figures are read when Prometheus
// collects them.
package metrics
