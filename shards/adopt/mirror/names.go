package mirror

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// The SQLSTATEs of refused writes.
const (
	RefusedOldWay = "KSA01" // a write without a shard's path
	RefusedShard  = "KSA02" // a write to an old table, of a row that is in a table of a shard
	refusedKey    = "44000" // a row of another shard, or of none, as WITH CHECK OPTION reports it
)

// The triggers of old tables. The first sorts before Postgres's own triggers.
const (
	triggerOld    = `"0kiloshard_adopt_mirror"`
	triggerClosed = "kiloshard_adopt_closed"
	triggerRecord = "kiloshard_adopt_record" // of package views
	// The triggers of old tables and those of shards' tables.
	triggerTruncate = "kiloshard_adopt_truncate"
	// The triggers of shards' tables. The first sorts after Postgres's own triggers.
	triggerNew   = "kiloshard_adopt_mirror"
	triggerDefer = "kiloshard_adopt_defer"
	// triggerColumns never fires. Postgres refuses to drop a column that it names, or to change its type.
	triggerColumns = "kiloshard_adopt_columns"
)

// Hidden returns the schema of the hidden tables of a shard, and Views that of its views while it has tables.
func Hidden(n shards.Number) string { return fmt.Sprintf("kiloshard_adopt_%d", n) }

// Views returns the schema that has the views of a shard while it has tables of its own.
func Views(n shards.Number) string { return fmt.Sprintf("kiloshard_adopt_%d_views", n) }

func functionOld(t *structure.Table) string { return fmt.Sprintf("kiloshard_adopt.old_%d", t.OID) }
func functionNew(t *structure.Table) string { return fmt.Sprintf("kiloshard_adopt.new_%d", t.OID) }
func functionDefer(t *structure.Table) string {
	return fmt.Sprintf("kiloshard_adopt.defer_%d", t.OID)
}

func functionDelete(t *structure.Table) string {
	return fmt.Sprintf("kiloshard_adopt.delete_%d", t.OID)
}

func functionCascade(t *structure.Table) string {
	return fmt.Sprintf("kiloshard_adopt.cascade_%d", t.OID)
}

// notMirror is true unless a mirror makes the statement.
const notMirror = `(current_user operator(pg_catalog.<>) 'kiloshard_adopt'::pg_catalog.name)`
