// Package ids hands out IDs to a service: those that shards make by next_id(), and those of the other generators that
// the map names, all through one interface, [Generator].
//
//	photo, err := ids.Open(ctx, ids.Config{Map: m, Name: "photo"})  // tickets, a sequence or a row: on hosts of their own
//	order := ids.OnShard[shards.ID](shard, "order")       // what each shard makes: interleaved numbers, UUIDs
//	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: shard})
//
// A [router.Shard] is a generator itself. In SQL all of them are functions to be a column's default:
// next_id(), next_order_id(), kiloshard.next_invoice_id().
//
// # Which one
//
//   - next_id(): IDs in the order of time that name their shard, made where the row is written. What to take
//     unless something speaks against it. At most 1024 a millisecond and shard.
//   - tickets: small numbers, or numbers that must not tell the shard. One round trip more for a row, unless leased;
//     no order among the servers; goes on while one server is left.
//   - interleaved: small numbers that name their shard, from the days of auto_increment. They do not tell the time,
//     and a sequence that is restored from yesterday gives yesterday's numbers again.
//   - sequence: one sequence for all shards, in order. One host that must never be down, one more round trip.
//   - row: numbers without a gap, for invoices and the like. Transactions that draw from one counter run one after
//     the other, and each waits for the commit of the one before it.
//   - uuidv4: made anywhere, 16 bytes, random, so that every insert touches another page of the index.
//   - uuidv7: made anywhere, 16 bytes, in the order of time.
//
// kiloshard bench ids shows what each costs on the machine at hand.
//
// # Leases
//
// A [Lease] takes blocks ahead of need and hands IDs out in memory, so that a service knows the IDs of a parent and its
// children before it sends them in one batch or by COPY. IDs that are left in a block when the service ends, or when
// the block has reached its age, are never used: a gap, and nothing else.
package ids
