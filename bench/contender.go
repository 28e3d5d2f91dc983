package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

// The names of the ways to make IDs.
const (
	Published   = "published"           // Instagram's function, as published
	Ours        = "next_id"             // on one shard, a call for each ID
	Ours16      = "next_id, 16 shards"  // the same, in turn on 16 shards
	OursMany    = "next_ids"            // one call for many IDs
	OursLeased  = "leased next_ids"     // blocks of IDs, handed out in memory
	Interleaved = "interleaved"         // shard k of N makes k, k+N, …
	Tickets     = "tickets"             // a round trip for each ID, two servers in turn
	Leased      = "leased tickets"      // blocks of tickets, handed out in memory
	Central     = "sequence"            // one for all shards
	Row         = "row"                 // without gaps, a transaction for each ID
	UUIDv4      = "uuidv4"              //
	UUIDv7      = "uuidv7"              //
	Nextval     = "nextval"             // a bare sequence, which is no sharded ID
	Single      = "next_id, one by one" // a round trip for each ID
)

// draw makes about n IDs and adds them to a set.
type draw func(ctx context.Context, n int, set *idSet) error

// contender is a way to make IDs.
type contender struct {
	name string
	// open returns one session's draw function. It is called before the measurement.
	open func(e *environment, conn *pgx.Conn, session int) draw
}

// environment is what contenders draw from.
type environment struct {
	leased  *ids.Lease[shards.ID] // of shard 5
	photo   *ids.Central          // tickets of two servers
	tickets *ids.Lease[shards.ID] // of the same
}

// contenders returns all ways to make IDs, the published one first. Unless noted, they use shard 5.
func contenders() []contender {
	return []contender{
		{Published, calls("bench.published()")},
		{Ours, calls("shard_00005.next_id()")},
		{Ours16, func(_ *environment, conn *pgx.Conn, session int) draw {
			turn := session
			return func(ctx context.Context, n int, set *idSet) error {
				turn++
				return set.collect(conn.Query(ctx, arrayOf(fmt.Sprintf("shard_%05d.next_id()", turn%16), n)))
			}
		}},
		{OursMany, func(_ *environment, conn *pgx.Conn, _ int) draw {
			return func(ctx context.Context, n int, set *idSet) error {
				return set.collect(conn.Query(ctx, "SELECT array(SELECT shard_00005.next_ids($1))", n))
			}
		}},
		{Single, singly("shard_00005.next_id()")},
		{OursLeased, handedOut(func(e *environment) *ids.Lease[shards.ID] { return e.leased })},
		{Interleaved, calls("shard_00005.next_order_id()")},
		{Tickets, func(e *environment, _ *pgx.Conn, _ int) draw {
			return func(ctx context.Context, _ int, set *idSet) error {
				made, err := e.photo.NextIDs(ctx, 1)
				set.addNumbers(made)
				return err
			}
		}},
		{Leased, handedOut(func(e *environment) *ids.Lease[shards.ID] { return e.tickets })},
		{Central, calls("kiloshard.next_message_id()")},
		{Row, singly("kiloshard.next_invoice_id()")},
		{UUIDv4, calls("shard_00005.next_session_id()")},
		{UUIDv7, calls("shard_00005.next_event_id()")},
		{Nextval, calls("nextval('bench.bare_seq')")},
	}
}

// calls draws with many calls of a function in one statement, as an insert of many rows does.
func calls(call string) func(*environment, *pgx.Conn, int) draw {
	return func(_ *environment, conn *pgx.Conn, _ int) draw {
		return func(ctx context.Context, n int, set *idSet) error {
			return set.collect(conn.Query(ctx, arrayOf(call, n)))
		}
	}
}

func arrayOf(call string, n int) string {
	return fmt.Sprintf("SELECT array_agg(%s) FROM (SELECT generate_series(1, %d)) AS calls", call, n)
}

// singly draws with one statement for each ID.
func singly(call string) func(*environment, *pgx.Conn, int) draw {
	return func(_ *environment, conn *pgx.Conn, _ int) draw {
		return func(ctx context.Context, _ int, set *idSet) error {
			return set.collect(conn.Query(ctx, "SELECT array["+call+"]"))
		}
	}
}

// handedOut draws from a lease.
func handedOut(of func(*environment) *ids.Lease[shards.ID]) func(*environment, *pgx.Conn, int) draw {
	return func(e *environment, _ *pgx.Conn, _ int) draw {
		lease := of(e)
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
