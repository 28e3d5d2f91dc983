package ids

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

// The names of the ways to make IDs that also are keys of tables or lines of plots.
const (
	published   = "published"          // Instagram's function, as published
	ours        = "next_id"            // on one shard, a call for each ID
	ours16      = "next_id, 16 shards" // the same, in turn on 16 shards
	oursMany    = "next_ids"           // one call for many IDs
	interleaved = "interleaved"        // shard k of N makes k, k+N, …
	central     = "sequence"           // one for all shards
	uuidv4      = "uuidv4"
	uuidv7      = "uuidv7"
)

// draw makes about n IDs and adds them to a set.
type draw func(ctx context.Context, n int, set *idSet) error

// way is a way to make IDs.
type way struct {
	name string
	// open returns one session's draw function. It is called before the measurement.
	open func(g *generators, conn *pgx.Conn, session int) draw
}

// generators are the generators of IDs outside a session.
type generators struct {
	leased  *ids.Lease[shards.ID] // of shard 5
	photo   *ids.Central          // tickets of two servers
	tickets *ids.Lease[shards.ID] // of the same
}

// ways returns all ways to make IDs, the published one first and next_id on one shard second. Unless noted, they use
// shard 5.
func ways() []way {
	return []way{
		{published, calls("bench.published()")},
		{ours, calls("shard_00005.next_id()")},
		{ours16, func(_ *generators, conn *pgx.Conn, session int) draw {
			turn := session
			return func(ctx context.Context, n int, set *idSet) error {
				turn++
				return set.collect(conn.Query(ctx, arrayOf(fmt.Sprintf("shard_%05d.next_id()", turn%16), n)))
			}
		}},
		{oursMany, func(_ *generators, conn *pgx.Conn, _ int) draw {
			return func(ctx context.Context, n int, set *idSet) error {
				return set.collect(conn.Query(ctx, "SELECT array(SELECT shard_00005.next_ids($1))", n))
			}
		}},
		{"next_id, one by one", singly("shard_00005.next_id()")},
		{"leased next_ids", fromLease(func(g *generators) *ids.Lease[shards.ID] { return g.leased })},
		{interleaved, calls("shard_00005.next_order_id()")},
		{"tickets", func(g *generators, _ *pgx.Conn, _ int) draw {
			return func(ctx context.Context, _ int, set *idSet) error {
				made, err := g.photo.NextIDs(ctx, 1)
				set.addNumbers(made)
				return err
			}
		}},
		{"leased tickets", fromLease(func(g *generators) *ids.Lease[shards.ID] { return g.tickets })},
		{central, calls("kiloshard.next_message_id()")},
		{"row", singly("kiloshard.next_invoice_id()")},
		{uuidv4, calls("shard_00005.next_session_id()")},
		{uuidv7, calls("shard_00005.next_event_id()")},
		{"nextval", calls("nextval('bench.bare_seq')")},
	}
}

// calls draws with many calls of a function in one statement, as an insert of many rows does.
func calls(call string) func(*generators, *pgx.Conn, int) draw {
	return func(_ *generators, conn *pgx.Conn, _ int) draw {
		return func(ctx context.Context, n int, set *idSet) error {
			return set.collect(conn.Query(ctx, arrayOf(call, n)))
		}
	}
}

func arrayOf(call string, n int) string {
	return fmt.Sprintf("SELECT array_agg(%s) FROM (SELECT generate_series(1, %d)) AS calls", call, n)
}

// singly draws with one statement for each ID.
func singly(call string) func(*generators, *pgx.Conn, int) draw {
	return func(_ *generators, conn *pgx.Conn, _ int) draw {
		return func(ctx context.Context, _ int, set *idSet) error {
			return set.collect(conn.Query(ctx, "SELECT array["+call+"]"))
		}
	}
}

// fromLease draws from a lease.
func fromLease(of func(*generators) *ids.Lease[shards.ID]) func(*generators, *pgx.Conn, int) draw {
	return func(g *generators, _ *pgx.Conn, _ int) draw {
		lease := of(g)
		return func(ctx context.Context, n int, set *idSet) error {
			for range n {
				id, err := lease.Next(ctx)
				if err != nil {
					return err
				}
				set.numbers = append(set.numbers, int64(id))
			}
			return nil
		}
	}
}
