package migrate

import (
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// lockClass is the first key of a shard's advisory lock; the second is the shard's number. Whoever
// migrates a shard holds it, exclusively. It stands beside the class of the engine's locks.
const lockClass = sql.LockClass + 1

// stateMoved is the SQLSTATE of a shard that does not stand at the version that was expected.
const stateMoved = "KSV01"

// script is the text, sent as one message, that takes one shard through some files. Each file has
// a transaction of its own in it:
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

// shape says what the files of a script are run in.
type shape struct {
	shard       shards.Number
	schema      string
	searchPath  string
	version     int32 // where the shard is expected to stand
	table       bool  // it has a version table
	lockTimeout time.Duration
}

// newScript returns the script for files that follow each other.
func newScript(s shape, files []file) script {
	var out script
	var b strings.Builder
	for _, f := range files {
		p := part{file: f, prologue: s.prologue(), epilogue: s.epilogue(f.number)}
		for _, statement := range p.prologue {
			b.WriteString(statement + ";\n")
		}
		p.start = b.Len()
		b.WriteString(f.sql)
		p.end = b.Len()
		b.WriteString("\n;\n") // on a line of its own, for the file may end in a comment
		b.WriteString(strings.Join(p.epilogue, ";\n") + ";\n")
		out.parts = append(out.parts, p)
		s.version, s.table = f.number, true
	}
	b.WriteString(neutral)
	out.text = b.String()
	return out
}

// prologue begins a file's transaction. Its isolation level is such that every statement sees what
// was committed before it began, also by whoever held the lock until then. The commit does not wait
// for the disk; see the package's documentation for why that is safe.
//
// The update that checks the version also marks the row with the number of the transaction.
func (s shape) prologue() []string {
	statements := []string{
		"begin isolation level read committed",
		"set local search_path = " + s.searchPath,
		"set local synchronous_commit = off",
		fmt.Sprintf("select pg_catalog.pg_advisory_xact_lock(%d, %d)", lockClass, s.shard),
	}
	if !s.table { // as tern makes it
		statements = append(statements,
			fmt.Sprintf("create table if not exists %s.%s(version int4 not null primary key)", s.schema, versionTable),
			fmt.Sprintf("insert into %[1]s.%[2]s(version) select 0 where 0=(select count(*) from %[1]s.%[2]s)", s.schema, versionTable))
	}
	statements = append(statements, fmt.Sprintf(`do $kiloshard$
declare found int;
begin
	update %[1]s.%[2]s set version = version returning version into strict found;
	if found <> %[3]d then
		raise exception using errcode = '%[4]s', message = '%[1]s is at version ' || found || ', not %[3]d';
	end if;
end $kiloshard$`, s.schema, versionTable, s.version, stateMoved))
	if s.lockTimeout > 0 {
		statements = append(statements, fmt.Sprintf("set local lock_timeout = %d", max(1, s.lockTimeout.Milliseconds())))
	}
	return statements
}

// epilogue records the version and commits. Settings that the file made are undone first, as tern
// does. The row is found only in the transaction that marked it, so that a file which ended its
// transaction does not get its version recorded. There is no quote in it that could close one
// which a file left open.
func (s shape) epilogue(version int32) []string {
	return []string{
		"reset all",
		"set search_path = pg_catalog",
		"set local synchronous_commit = off",
		fmt.Sprintf("update %s.%s set version = %d where xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid returning version as %s", s.schema, versionTable, version, recorded),
		"commit",
	}
}
