package sql

import (
	"fmt"
	"strings"
)

// ShardTurn is how somebody works on a shard: alone, or beside others of its kind.
type ShardTurn struct {
	Shard  int
	Schema string // a plain identifier
	Beside bool   // others that work beside may have the shard too, and a role that may not lock anything there
}

// Try returns a script whose last row says "true" if nobody else works on the shard; then it is so until the transaction
// ends. It waits for nobody, and false may also mean that a VACUUM has the shard's version table for a moment. Only who may
// write that table keeps others out. Before there is such a table, it is an advisory lock that does, which anybody can take;
// it counts where its holder may create in the schema.
func (t ShardTurn) Try() string { return t.render("try shard script", turnData{}) }

// Lock returns a statement that takes the lock of the shard's version table, or fails with lock_not_available. Between
// statements such a transaction has no snapshot.
func (t ShardTurn) Lock() string {
	return "LOCK TABLE " + t.Schema + ".schema_version IN SHARE UPDATE EXCLUSIVE MODE NOWAIT"
}

// Mark returns a query for "true" if nobody with rights in the schema has the shard's advisory lock. It takes it for the
// session, unless somebody without rights has it.
func (t ShardTurn) Mark() string { return t.render("mark shard", turnData{}) }

// Holders returns a query for who works on the shard, as text; it is empty for nobody.
func (t ShardTurn) Holders() string { return t.render("name shard holders", turnData{Tables: true}) }

func (t ShardTurn) render(name string, d turnData) string {
	d.ShardTurn, d.ShardText, d.SchemaText = t, fmt.Sprint(t.Shard), "'"+t.Schema+"'"
	return strings.TrimSpace(render(name, d))
}

// turnData is what locks.sql is rendered with.
type turnData struct {
	ShardTurn
	Tables bool // locks of the version table, too

	ShardText, SchemaText string // as SQL
}

func (turnData) ShardLock() int { return ShardLock }

// CreateLock is the table whose lock those hold who make, upgrade or grant shards. A database of an older release lacks it.
const CreateLock = "kiloshard.lock_create"

// TableHolder returns a query for who has locked a table by SHARE UPDATE EXCLUSIVE, as text; it has no row if nobody has.
func TableHolder(table string) string {
	return "SELECT" + render("table holder", nil) + render("table holders", table) + " LIMIT 1"
}
