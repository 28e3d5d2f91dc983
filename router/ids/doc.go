// Package ids hands out IDs to a service: those that shards make with next_id(), and those of the other generators in the
// map. All have one interface, [Generator].
//
//	photo, err := ids.Open(ctx, ids.Config{Map: m, Name: "photo"})  // tickets, a sequence or a row: on hosts of their own
//	order := ids.OnShard[shards.ID](shard, "order")       // what each shard makes: interleaved numbers, UUIDs
//	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: shard})
//
// A [router.Shard] is a generator itself. In SQL, each generator is a function that can be the default of a column:
// next_id(), next_order_id(), kiloshard.next_invoice_id().
//
// # Which one
//
//   - next_id(): IDs that name their shard and rise with time, made where the row is written. Use it unless you have a reason
//     not to. At most 1024 IDs per millisecond and shard.
//   - tickets: small numbers, or numbers that must not show the shard. One more round trip per row, unless leased. The servers'
//     numbers are in no common order. It works as long as one server is up.
//   - interleaved: small numbers that name their shard, as with auto_increment. They do not show the time, and a sequence that
//     is restored from a backup repeats numbers.
//   - sequence: one sequence for all shards, in order. Depends on one host, and takes one more round trip.
//   - row: numbers without gaps, for invoices and the like. Transactions that use one counter run one after another: each waits
//     for the commit of the one before it.
//   - uuidv4: made anywhere, 16 bytes, random, so that each insert writes to another page of the index.
//   - uuidv7: made anywhere, 16 bytes, in the order of time.
//
// kiloshard-lab bench ids measures each of them on your machine.
//
// # Leases
//
// A [Lease] fetches blocks of IDs in advance and hands them out from memory. So a service knows the IDs of a parent and its
// children before it sends them, in one batch or by COPY. IDs that are left when the service ends, or when their block is too
// old, are never used. They leave a gap.
package ids
