package sql

import (
	"fmt"
	"strings"
)

// ShardTurn is an exclusive or a shared lock of a shard.
type ShardTurn struct {
	Shard  int
	Schema string // a plain identifier
	Beside bool   // shared: other shared holders are allowed, and so are roles that may not lock the version table
}

// Try returns a script whose last row says "true" if it took the shard's lock, which it holds until the transaction ends.
// It does not wait. False may also mean that a VACUUM holds the shard's version table for a moment. Only a role that may
// write that table can lock others out. While the table is missing, an advisory lock takes its place. Anybody can take
// that lock, so it counts only if its holder may create in the schema.
func (t ShardTurn) Try() string { return t.render("try shard script", turnData{}) }

// Lock returns a statement that locks the shard's version table, or fails with lock_not_available. Between statements
// its transaction has no snapshot.
func (t ShardTurn) Lock() string {
	return "LOCK TABLE " + t.Schema + ".schema_version IN SHARE UPDATE EXCLUSIVE MODE NOWAIT"
}

// Mark returns a query that is "true" if no session with rights in the schema holds the shard's advisory lock. It takes
// that lock for the session, unless a session without rights holds it.
func (t ShardTurn) Mark() string { return t.render("mark shard", turnData{}) }

// Holders returns a query for the sessions that hold the shard's locks, as text; empty if there are none.
func (t ShardTurn) Holders() string { return t.render("name shard holders", turnData{Tables: true}) }

func (t ShardTurn) render(name string, d turnData) string {
	d.ShardTurn, d.ShardText, d.SchemaText = t, fmt.Sprint(t.Shard), "'"+t.Schema+"'"
	return strings.TrimSpace(render(name, d))
}

// turnData is the template data of locks.sql.
type turnData struct {
	ShardTurn
	Tables bool // include locks of the version table

	ShardText, SchemaText string // as SQL
}

func (turnData) ShardLock() int { return ShardLock }

// CreateLock is the table that commands lock while they make, upgrade or grant shards.
const CreateLock = "kiloshard.lock_create"

// TableHolder returns a query for the session that holds SHARE UPDATE EXCLUSIVE on a table, as text; no row if there is none.
func TableHolder(table string) string {
	return "SELECT" + render("table holder", nil) + render("table holders", table) + " LIMIT 1"
}
