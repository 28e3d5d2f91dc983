package replica

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Position is a position in the write-ahead log of a host. The zero Position is before everything. Package router
// documents it.
type Position struct {
	system   int64 // pg_control_system().system_identifier
	timeline uint32
	lsn      uint64
}

var errBadPosition = errors.New("invalid position: expected a text that Position.String returned")

// PositionQuery asks a primary for its position, for [ScanPosition].
const PositionQuery = `select system_identifier, substr(pg_walfile_name(place), 1, 8), (place - '0/0')::int8,
	current_setting('wal_block_size')::int8 from pg_control_system(), pg_current_wal_insert_lsn() as place`

// ScanPosition scans the row of [PositionQuery].
func ScanPosition(row pgx.Row) (Position, error) {
	var p Position
	var timeline string
	var lsn, block int64
	if err := row.Scan(&p.system, &timeline, &lsn, &block); err != nil {
		return Position{}, err
	}
	p.timeline, p.lsn = timelineOf(timeline), recordEnd(lsn, block)
	return p, nil
}

// IsZero reports whether the position is the zero Position.
func (p Position) IsZero() bool { return p == Position{} }

// String returns the position as a text, such as 7434811045227790337/1/0/16B3748, and "" for the zero Position.
func (p Position) String() string {
	if p.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d/%d/%X/%X", p.system, p.timeline, p.lsn>>32, uint32(p.lsn))
}

// MarshalText returns what String does.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses what String returned. For anything else it returns an error and does not change the position.
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
	read.lsn = uint64(high)<<32 | uint64(low)
	if read.String() != string(text) {
		return errBadPosition
	}
	*p = read
	return nil
}

// timelineOf returns the timeline at the beginning of the name of a log file.
func timelineOf(name string) (timeline uint32) {
	_, _ = fmt.Sscanf(name, "%08X", &timeline) // Postgres made it
	return timeline
}

// recordEnd returns the end of the last WAL record before an insert position. At the beginning of a page the two differ by
// the page's header, and a replica that has replayed the record is at the record's end. A header has 24 bytes, the first one
// of a file 40. No record ends within a header or right after it.
func recordEnd(lsn, block int64) uint64 {
	if at := lsn % block; at == 24 || at == 40 {
		lsn -= at
	}
	return uint64(lsn)
}
