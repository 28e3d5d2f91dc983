package migrate

import (
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// script is the text, sent as one message, that runs some files in one shard. Each file has a transaction of its own:
//
//	begin … lock … check the version    the prologue
//	the file's SQL
//	… record the new version … commit   the epilogue
type script struct {
	text  string
	parts []part
}

// part is one file in a script.
type part struct {
	file       file
	start, end int      // the bytes of the script that hold the file's SQL
	prologue   []string // the statements before it
	epilogue   []string // and after it
}

// shape is the shard and the settings that a script's files run with.
type shape struct {
	run, who   string
	shard      shards.Number
	schema     string
	searchPath string
	version    int32 // the shard's expected version
	table      bool  // it has a version table

	lockTimeout, statementTimeout time.Duration // 0 for the server's own

	everyCatalog bool // look for changes outside the shard in every catalog
}

// newScript returns the script for files that follow each other.
func newScript(s shape, files []file) script {
	var out script
	var b strings.Builder
	for i, f := range files {
		p := part{file: f, prologue: s.prologue(), epilogue: s.epilogue(f, i == 0)}
		p.write(&b)
		out.parts = append(out.parts, p)
		s.version, s.table = f.after, true
	}
	b.WriteString(neutral)
	out.text = b.String()
	return out
}

// write adds the part to a script's text.
func (p *part) write(b *strings.Builder) {
	for _, statement := range p.prologue {
		b.WriteString(statement + ";\n")
	}
	p.start = b.Len()
	b.WriteString(p.file.sql)
	p.end = b.Len()
	b.WriteString("\n;\n") // on a line of its own, for the file may end in a comment
	b.WriteString(strings.Join(p.epilogue, ";\n") + ";\n")
}

// prologue begins a file's transaction. Its isolation level lets every statement see all earlier commits, including those
// of the session that held the lock before. It does not wait for the lock; see [run.awaitShard].
func (s shape) prologue() []string {
	return []string{
		"begin isolation level read committed",
		fmt.Sprintf("select kiloshard.begin_migration(%d, %d, '%s', %d, %s, '%s', '%s', %t)",
			sql.ShardLock, s.shard, s.schema, s.version, quote(s.searchPath), milliseconds(s.lockTimeout), milliseconds(s.statementTimeout), !s.table),
	}
}

// milliseconds returns a timeout as a setting, empty for the server's own.
func milliseconds(timeout time.Duration) string {
	if timeout <= 0 {
		return ""
	}
	return fmt.Sprint(max(1, timeout.Milliseconds()))
}

// epilogue resets the settings and the role that the file may have changed, as tern does, refuses changes outside the shard, records the version and the
// ledger's entry, and commits. It does not record the version of a file that ended its transaction. Its quotes come in
// pairs, so a quote that the file left open is still open at the end of the script, and the server refuses all of it.
func (s shape) epilogue(f file, first bool) []string {
	return append(s.resets(),
		"set local synchronous_commit = off",
		s.inside(),
		fmt.Sprintf("select kiloshard.end_migration('%s', %d, %s, %t) as %s", s.schema, f.after, s.entry(f).values(), first, recorded),
		"commit",
	)
}

// resets returns the statements that reset what a file may have set.
func (s shape) resets() []string {
	statements := []string{
		"reset all",
		"reset session authorization",
		connect.CheckRole,
		"reset role",
		"set search_path = pg_catalog",
	}
	if s.lockTimeout > 0 {
		statements = append(statements, "set local lock_timeout = "+milliseconds(s.lockTimeout)) // others wait for what the file has locked
	}
	return statements
}

// inside returns the query that refuses a file that changed something outside the shard.
func (s shape) inside() string {
	return fmt.Sprintf("select kiloshard.keep_inside('%s', %t, null)", s.schema, s.everyCatalog)
}

// entry is the ledger's row for a file.
func (s shape) entry(f file) entry {
	return entry{run: s.run, who: s.who, shard: s.shard, version: f.number, file: f.name, direction: f.direction, checksum: f.checksum}
}
