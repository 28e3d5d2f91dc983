// Package metrics shows Prometheus what a router does.
//
//	recorder := metrics.New(metrics.Config{})
//	r, err := router.New(ctx, router.Config{Map: theMap, Tracers: []pgx.QueryTracer{recorder}})
//	…
//	prometheus.MustRegister(recorder.Collector(r))
//
// All series have the labels cluster and strategy, and those about a host have the label host. None has one for a shard:
// thousands of shards make no more series than one does. Series of a host that has left the map go with it. Those about a
// replica have the label replica besides, which is its index in the map, from 0.
//
//	kiloshard_router_operation_seconds         histogram, by kind (read, write, tx, batch, copy): from the call to its
//	                                           answer, waiting included; the calls of a transaction each
//	kiloshard_router_wait_seconds              histogram: of it, until there was a connection
//	kiloshard_router_fanout_seconds            histogram, by kind (each, collect, merge, getmany, stream), not by host:
//	                                           work over many shards, until the last has answered
//	kiloshard_router_fanouts_incomplete_total  by kind: those that were not done on all their shards
//	kiloshard_router_batch_size                histogram: how many calls were sent together that waited for a connection
//	kiloshard_router_errors_total              by class: the first two characters of the SQLSTATE, or a class of
//	                                           operation.Classify, such as unreachable or timeout
//	kiloshard_router_calls_total               statements by themselves, batches, transactions
//	kiloshard_router_resent_total              calls that were sent once more
//	kiloshard_router_lost_total                calls whose answers were lost with a connection
//	kiloshard_router_retries_total             transactions that router.Retry ran again
//	kiloshard_router_retries_exhausted_total   those that it gave up
//	kiloshard_router_connections               by state: idle or busy
//	kiloshard_router_connections_max           how many there may be
//	kiloshard_router_waiting_calls             calls that wait for a connection
//	kiloshard_router_pooler                    1 if there is a pooler before the server
//	kiloshard_router_breaker                   by state: 1 for closed, open or half-open, 0 for the two others
//	kiloshard_router_down_seconds              for how long the host has been down; 0 if it is not
//	kiloshard_router_role_changes_total        how often another of its addresses became the primary
//	kiloshard_router_primary_info              1, by the address that calls go to; none while no primary is known
//	kiloshard_router_shards                    how many shards the map puts there
//	kiloshard_router_reads_on_primary_total    reads that no replica would do for, with replicas only, as the following
//	kiloshard_router_hedged_reads_total        reads that were sent to a second server
//	kiloshard_router_hedges_won_total          those that it answered first
//	kiloshard_router_replicas_measured         1 while somebody reads, so that the replicas are being measured
//	kiloshard_router_replica_usable            1 if readers with the default bound may use it; while measured
//	kiloshard_router_replica_lag_seconds       how old at most is what a read would see; while measured, if it is known
//	kiloshard_router_replica_reads_total       that were sent to it
//	kiloshard_router_replica_failed_total       those of them that another server had to answer
//	kiloshard_router_replica_connections       to it
//	kiloshard_router_map_version               of the map by which the router goes
//	kiloshard_router_map_changes_total         how often it went over to another one
//	kiloshard_router_map_changed_timestamp_seconds
//	                                           when it did so last
//	kiloshard_router_map_stale                 1 if there may be a newer one, as router.MapState has it in Err
//	kiloshard_router_map_stale_timestamp_seconds
//	                                           since when; none if there is no sign of a newer one
//	kiloshard_router_directory_entries         that are kept, with a directory only, as the following
//	kiloshard_router_directory_hits_total      entries that were there when they were wanted
//	kiloshard_router_directory_misses_total    entries that were not
//
// [Leads] adds what it asks the hosts for; one service of a cluster registers it:
//
//	kiloshard_router_sequences_leading         how many sequences lead the clock by more than a second: it stepped back
//	kiloshard_router_sequence_lead_seconds     by sequence: the largest lead; none if no sequence leads
//	kiloshard_router_sequences_unknown         1 if the host does not say
//
// [Cleaner] adds what a cleaner of package router/entities has done, and what it asks the shards for:
//
//	kiloshard_router_entities_repaired_total   entities whose index rows it has repaired
//	kiloshard_router_entities_filled_total     entities that the filling of an index has read
//	kiloshard_router_entity_index_rows_checked_total
//	                                           index rows that it has checked afterwards
//	kiloshard_router_entity_index_rows_added_total
//	kiloshard_router_entity_index_rows_removed_total
//	kiloshard_router_entities_taken_total      entities without a row in a unique index: another one has it
//	kiloshard_router_entity_work_waiting       writes whose index rows are left to a cleaner
//	kiloshard_router_entity_work_lag_seconds   for how long the oldest of them has been due
//	kiloshard_router_entity_work_unknown       1 if a shard does not say
//
// Observing an operation takes a fraction of a microsecond, no lock and no allocation. The rest is read when Prometheus
// asks for it.
package metrics
