package sql

import (
	"fmt"
	"time"
)

// engineData is the template data of the helper schema: the parameters and values derived from them.
type engineData struct {
	Params
	Version string
}

// shardData is the template data of shard.sql.
type shardData struct {
	engineData
	Number int
	Schema string
}

// An installation checks the owners in the helper schema only, so these are empty.
func (engineData) Shards() string      { return "false" }
func (engineData) Relations() []string { return nil }
func (engineData) Functions() []string { return nil }
func (engineData) DatabaseOwner() bool { return false }

func (engineData) FenceMark() string   { return FenceMark }
func (engineData) Refused() string     { return Refused }
func (engineData) Release() string     { return release }
func (engineData) ShardMoved() string  { return ShardMoved }
func (engineData) ShardBusy() string   { return ShardBusy }
func (engineData) LeftShard() string   { return LeftShard }
func (engineData) ShardGone() string   { return ShardGone }
func (engineData) ShardMoving() string { return ShardMoving }
func (engineData) LockClass() int      { return LockClass }
func (engineData) Setters() int        { return Setters }
func (engineData) SetterWait() string  { return setterWait }
func (engineData) WindowBehind() int   { return windowBehind }
func (engineData) WindowAhead() int    { return windowAhead }
func (engineData) WindowShort() int    { return windowShort }

// Slots is the number of IDs per shard and millisecond.
func (d engineData) Slots() int64 { return 1 << d.SequenceBits }

// Block is how many IDs next_ids draws one by one before it tries to take a run again.
func (d engineData) Block() int64    { return min(127, max(1, d.Slots()/8)) }
func (d engineData) SlotMask() int64 { return d.Slots() - 1 }
func (d engineData) LowBits() int    { return d.ShardBits + d.BelowShard() }
func (d engineData) BelowShard() int { return d.TypeBits + d.SequenceBits }
func (d engineData) ShardMask() int  { return 1<<d.ShardBits - 1 }
func (d engineData) TypeMask() int   { return 1<<d.TypeBits - 1 }

// ShardIsWide reports whether a shard number, shifted to its position in an ID, overflows a Postgres int. TypeIsWide
// does the same for a type.
func (d engineData) ShardIsWide() bool { return d.LowBits() > 31 }
func (d engineData) TypeIsWide() bool  { return d.BelowShard() > 31 }

// SequenceType is the Postgres type that holds an ID's sequence.
func (d engineData) SequenceType() string {
	if d.SequenceBits > 31 {
		return "bigint"
	}
	return "int"
}

func (d engineData) SlotsPerSecond() int64   { return 1000 * d.Slots() }
func (d engineData) SlotsAhead() int64       { return windowAhead * d.Slots() }
func (d engineData) SlotsShort() int64       { return windowShort * d.Slots() }
func (d engineData) SlotsBehind() int64      { return windowBehind * d.Slots() }
func (d engineData) MaxSequenceValue() int64 { return 1<<(d.TimeBits+d.SequenceBits) - 1 }

func (d engineData) EpochMilliseconds() int64 { return d.Epoch.UnixMilli() }

// EpochSeconds is the epoch as a double precision constant.
func (d engineData) EpochSeconds() string { return double(d.Epoch) }

// MiddleSeconds is the epoch shifted to the middle of the window around the clock, as a double precision constant.
func (d engineData) MiddleSeconds() string {
	return double(d.Epoch.Add((windowBehind - windowAhead) * time.Millisecond / 2))
}

// HalfWindow is half of the window around the clock, in slots.
func (d engineData) HalfWindow() int64 { return (windowBehind + windowAhead) * d.Slots() / 2 }

func double(t time.Time) string {
	return fmt.Sprintf("%d.%06d::double precision", t.Unix(), t.Nanosecond()/int(time.Microsecond))
}

// EpochText and EndText are timestamps in RFC 3339. EpochPlain is the epoch in UTC, without a zone.
func (d engineData) EpochText() string  { return d.Epoch.UTC().Format(time.RFC3339Nano) }
func (d engineData) EndText() string    { return d.End.UTC().Format(time.RFC3339Nano) }
func (d engineData) EpochPlain() string { return d.Epoch.UTC().Format("2006-01-02 15:04:05.999") }
