package rows

import (
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
)

// Config is what [Tables], [Back] and [Finish] work on.
type Config struct {
	Map  *shards.Map // all of its shards are on the old database, its one host
	File *adopt.File // the decisions of gate 1

	Shards      shards.Set                  // of Tables. Defaults to all
	QuietFor    time.Duration               // how long nobody may have written without a shard's path before the old tables are closed. Defaults to none
	KeepFor     time.Duration               // of Finish: how long the old tables are kept after the mirrors have ended. Defaults to none
	Drop        func(tables []string) error // of Finish: is called before old tables are dropped; an error keeps them. Defaults to keeping them
	LockTimeout time.Duration               // how long one try of a cutover waits for locks, and clients behind it. Defaults to 1 s
	Parallel    int                         // tables, or shards, at a time. Defaults to 4
	Group       int                         // shards that are copied together. Defaults to 64
	Batch       int                         // rows that are copied together. Defaults to 2,000

	Report func(Event) // is called with one event at a time. Defaults to none
}

// Kind is the kind of an [Event].
type Kind string

// The kinds of events, in the order in which they happen to a shard.
const (
	Closed    Kind = "closed"    // the old tables refuse writes without a shard's path
	Made      Kind = "made"      // the shard's hidden tables
	Copying   Kind = "copying"   // the stage of shards: writers mirror their rows
	Waiting   Kind = "waiting"   // for transactions or locks of others
	Copied    Kind = "copied"    // some rows of a table
	Compared  Kind = "compared"  // the rows of a table
	Cutover   Kind = "cutover"   // the shard has tables
	Retrying  Kind = "retrying"  // a cutover, after a lock was not free in time
	Validated Kind = "validated" // foreign keys of the shard
	Reverted  Kind = "reverted"  // the shard has views again
	Opened    Kind = "opened"    // the old tables are as they were
	Ended     Kind = "ended"     // the mirrors
	Dropped   Kind = "dropped"   // the old tables
)

// Event says what has happened.
type Event struct {
	Kind   Kind
	Shards shards.Set // that it happened to; empty for all of the database
	Table  string     // that it happened to; empty for all
	Text   string     // for people
	Rows   int64      // that were copied or compared
}

func (c Config) withDefaults() Config {
	if c.Shards.Len() == 0 {
		c.Shards = c.Map.All()
	}
	if c.LockTimeout <= 0 {
		c.LockTimeout = time.Second
	}
	if c.Parallel <= 0 {
		c.Parallel = 4
	}
	if c.Group <= 0 {
		c.Group = 64
	}
	if c.Batch <= 0 {
		c.Batch = 2000
	}
	return c
}
