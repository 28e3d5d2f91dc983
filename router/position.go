package router

import (
	"context"
	"errors"
	"fmt"
)

// Position is how far a host has come in its write-ahead log. The zero Position is before everything.
//
// As a text it can be kept where the next request of the same user finds it, such as in a cookie: it says nothing but
// the number of the host's cluster, its timeline, and the place in the log. A text from a stranger does no harm: the
// worst that it can do is to send reads to the primary.
type Position struct {
	system   int64 // pg_control_system().system_identifier
	timeline uint32
	place    uint64 // the LSN
}

var errBadPosition = errors.New("a position: expected a text that Position.String has returned")

// Position returns how far the primary has come, with whatever was committed there before the call. A reader that is
// told of it by [Reads.After] sees all of that:
//
//	_, err := shard.Exec(ctx, `update photos set title = $1 where id = $2`, title, id)
//	at, err := shard.Position(ctx)
//	…
//	shard.ReadOnly(router.Reads{After: at}).QueryRow(ctx, `select title from photos where id = $1`, id)
//
// Ask for it after the COMMIT: before, the commit itself is not in the log. It is a round trip. The position is that of
// the log in memory (pg_current_wal_insert_lsn), not of what is on the disk: with synchronous_commit off, a transaction is
// visible to all before it is on the disk, or on its way to a replica.
//
// The error is one of a [Shard].
func (s Shard) Position(ctx context.Context) (Position, error) {
	const query = `select system_identifier, substr(pg_walfile_name(place), 1, 8), (place - '0/0')::int8,
	current_setting('wal_block_size')::int8 from pg_control_system(), pg_current_wal_insert_lsn() as place`
	var p Position
	var timeline string
	var place, block int64
	if err := s.QueryRow(ctx, query).Scan(&p.system, &timeline, &place, &block); err != nil {
		return Position{}, err
	}
	p.timeline, p.place = timelineOf(timeline), recordEnd(place, block)
	return p, nil
}

// IsZero tells whether the position is the zero Position.
func (p Position) IsZero() bool { return p == Position{} }

// String returns the position as a text, such as 7434811045227790337/1/0/16B3748, and "" for the zero Position.
func (p Position) String() string {
	if p.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d/%d/%X/%X", p.system, p.timeline, p.place>>32, uint32(p.place))
}

// MarshalText returns what String does.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String returned. For anything else it returns an error and leaves the position as it is.
func (p *Position) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = Position{}
		return nil
	}
	var read Position
	var high, low uint32
	if _, err := fmt.Sscanf(string(text), "%d/%d/%X/%X", &read.system, &read.timeline, &high, &low); err != nil {
		return errBadPosition
	}
	read.place = uint64(high)<<32 | uint64(low)
	if read.String() != string(text) {
		return errBadPosition
	}
	*p = read
	return nil
}

// timelineOf returns the timeline with which the name of a file of the log begins.
func timelineOf(name string) (timeline uint32) {
	_, _ = fmt.Sscanf(name, "%08X", &timeline) // Postgres has made it
	return timeline
}

// recordEnd returns where the last record before a place to insert at ends. At the beginning of a page the two differ by
// the page's header, and a replica that has replayed that record is at its end. Headers have 24 bytes, the first of a file
// 40; no record ends within one or right behind it.
func recordEnd(place, block int64) uint64 {
	if at := place % block; at == 24 || at == 40 {
		place -= at
	}
	return uint64(place)
}
