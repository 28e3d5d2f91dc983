// Package script has the SQL that runs files in a shard, sent as one message, and says from the server's answer which of them failed,
// and where.
package script

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// Script is the text, sent as one message, that runs some files in one shard. Each file has a transaction of its own:
//
//	begin … lock … check the version    the prologue
//	the file's SQL
//	… record the new version … commit   the epilogue
type Script struct {
	text  string
	parts []part
}

// part is one file in a script.
type part struct {
	file       files.File
	start, end int      // the bytes of the script that hold the file's SQL
	prologue   []string // the statements before it
	epilogue   []string // and after it
}

// Shape is the shard and the settings that a script's files run with.
type Shape struct {
	Run, Who   string // for the ledger
	Shard      shards.Number
	Schema     string
	SearchPath string
	Version    int32 // the shard's expected version
	Table      bool  // it has a version table

	LockTimeout, StatementTimeout time.Duration // 0 for the server's own

	EveryCatalog bool // look for changes outside the shard in every catalog
}

// New returns the script for files that follow each other.
func New(s Shape, all []files.File) Script {
	var out Script
	var b strings.Builder
	for i, f := range all {
		p := part{file: f, prologue: s.prologue(), epilogue: s.epilogue(f, i == 0)}
		p.write(&b)
		out.parts = append(out.parts, p)
		s.Version, s.Table = f.After, true
	}
	b.WriteString(session.Neutral)
	out.text = b.String()
	return out
}

// write adds the part to a script's text.
func (p *part) write(b *strings.Builder) {
	for _, statement := range p.prologue {
		b.WriteString(statement + ";\n")
	}
	p.start = b.Len()
	b.WriteString(p.file.SQL)
	p.end = b.Len()
	b.WriteString("\n;\n") // on a line of its own, for the file may end in a comment
	b.WriteString(strings.Join(p.epilogue, ";\n") + ";\n")
}

// prologue begins a file's transaction. Its isolation level lets every statement see all earlier commits, including those
// of the session that held the lock before. It does not wait for the lock; see turn.Await.
func (s Shape) prologue() []string {
	return []string{
		"begin isolation level read committed",
		fmt.Sprintf("select kiloshard.begin_migration(%d, %d, '%s', %d, %s, '%s', '%s', %t)",
			sql.ShardLock, s.Shard, s.Schema, s.Version, sqltext.Quote(s.SearchPath), Milliseconds(s.LockTimeout), Milliseconds(s.StatementTimeout), !s.Table),
	}
}

// Milliseconds returns a timeout as a setting, empty for the server's own.
func Milliseconds(timeout time.Duration) string {
	if timeout <= 0 {
		return ""
	}
	return fmt.Sprint(max(1, timeout.Milliseconds()))
}

// epilogue resets the settings and the role that the file may have changed, as tern does, refuses changes outside the shard, records the version and the
// ledger's entry, and commits. It does not record the version of a file that ended its transaction. Its quotes come in
// pairs, so a quote that the file left open is still open at the end of the script, and the server refuses all of it.
func (s Shape) epilogue(f files.File, first bool) []string {
	return append(s.resets(),
		"set local synchronous_commit = off",
		s.Inside(),
		fmt.Sprintf("select kiloshard.end_migration('%s', %d, %s, %t) as %s", s.Schema, f.After, s.Entry(f).Values(), first, recorded),
		"commit",
	)
}

// resets returns the statements that reset what a file may have set.
func (s Shape) resets() []string {
	statements := []string{
		"reset all",
		"reset session authorization",
		connect.CheckRole,
		"reset role",
		"set search_path = pg_catalog",
	}
	if s.LockTimeout > 0 {
		statements = append(statements, "set local lock_timeout = "+Milliseconds(s.LockTimeout)) // others wait for what the file has locked
	}
	return statements
}

// Inside returns the query that refuses a file that changed something outside the shard.
func (s Shape) Inside() string {
	return fmt.Sprintf("select kiloshard.keep_inside('%s', %t, null)", s.Schema, s.EveryCatalog)
}

// Entry is the ledger's row for a file.
func (s Shape) Entry(f files.File) ledger.Entry {
	return ledger.Entry{Run: s.Run, Who: s.Who, Shard: s.Shard, Version: f.Number, File: f.Name, Direction: f.Direction, Checksum: f.Checksum}
}

// OnHost returns the script that runs a file once on a host. It may change only the given schemas; names without a schema mean the
// first of them. Of the shape it takes what is not about a shard.
func OnHost(s Shape, schemas []string, f files.File) Script {
	path := ""
	for _, schema := range schemas {
		path += pgx.Identifier{schema}.Sanitize() + ", "
	}
	path += "pg_temp"
	s.Shard = -1
	p := part{
		file: f,
		prologue: []string{
			"begin isolation level read committed",
			fmt.Sprintf("select kiloshard.begin_shared(%s, %s, '%s', '%s')", s.Entry(f).Values(), sqltext.Quote(path),
				Milliseconds(s.LockTimeout), Milliseconds(s.StatementTimeout)),
		},
		epilogue: append(s.resets(),
			"select kiloshard.keep_inside(null, true, "+textArray(schemas)+")",
			fmt.Sprintf("select kiloshard.end_shared(%d) as %s", f.Number, recorded),
			"commit",
		),
	}
	var b strings.Builder
	p.write(&b)
	b.WriteString(session.Neutral)
	return Script{text: b.String(), parts: []part{p}}
}

// textArray returns texts as an SQL array.
func textArray(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = sqltext.Quote(text)
	}
	return "array[" + strings.Join(quoted, ", ") + "]"
}
