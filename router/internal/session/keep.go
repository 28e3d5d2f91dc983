package session

import "time"

// Since version 18 Postgres reports search_path to the client: a ParameterStatus comes before the end of each message that has changed
// it. Such a session keeps the path of a shard after a statement, and the next statement of the same shard goes without an entry. What an entry finds is known without it:
//
//   - The path is the shard's, by the last report. Of a path that moves and moves back within one message there is none: so
//     a group of reads still asks for the path, and a write still has its end. See [pathQuery] and [endQuery].
//   - A read only reads, by the last report of default_transaction_read_only, which its entry has switched on.
//   - The shard is there, or the statement fails: it names relations of the shard's schema and of no other but pg_catalog, by the locks
//     that the server took to prepare it. A schema that is missing has none, and those of a fence raise an error. No other
//     schema than pg_temp stands behind the shard's in the path. A copy that is on its way to this host has tables: triggers refuse
//     to write them, and for those who read them there is an entry at least once in [KeepFor]. No copy arrives on a host
//     until a few times that after the shard has left it: see package move.
//
// After an error that may come from this, an entry by itself says what is true: see [Session.CheckEntry]. Everything but statements by
// themselves (transactions, batches, several statements in one string) has an entry, which puts the session's own path back
// to the base path: what ends the transaction of such a message must not find the shard.

// KeepFor is how long after an entry statements go without one.
const KeepFor = time.Second

const (
	statusPath  = "search_path"
	statusReads = "default_transaction_read_only"
)

// reportsMark is a path that a new session is given, to see whether it is reported. There is no such schema.
const reportsMark = "kiloshard_reports"

// keepCheck gives the session itself the shard's path ($1), and fails with 22023 unless the shard's schema ($2) is the one that a first
// entry has found ($3) and the role has USAGE on it.
const keepCheck = `pg_catalog.set_config('search_path', case
 when $2::pg_catalog.regnamespace::pg_catalog.oid operator(pg_catalog.=) $3::pg_catalog.oid
  and pg_catalog.has_schema_privilege($3, 'usage') then $1::pg_catalog.text
 else '"' end, false)`

const (
	// keepReads has the session's next transactions only read.
	keepReads = `, pg_catalog.set_config('default_transaction_read_only', 'on', false)` + readOnly

	// toBase gives the session the base path ($3).
	toBase = `pg_catalog.set_config('search_path', $3, false), `
)

const (
	keepName          = namePrefix + "keep"
	keepReadName      = namePrefix + "keep_read"
	firstKeepName     = namePrefix + "first_keep"
	firstKeepReadName = namePrefix + "first_keep_read"
	baseName          = namePrefix + "base"
	baseReadName      = namePrefix + "base_read"
	firstBaseName     = namePrefix + "first_base"
	firstBaseReadName = namePrefix + "first_base_read"
)

var (
	firstKeepQuery = `select ` + shardOID + `, ` + isThere(unlessFenced) + `, pg_catalog.set_config('search_path', $1, false)`
	firstBaseQuery = `select ` + shardOID + `, ` + toBase + firstEntryCheck

	// reportedQueries are the entries that begin a message where the server reports the path.
	reportedQueries = map[string]string{
		keepName: `select ` + keepCheck, keepReadName: `select ` + keepCheck + keepReads,
		firstKeepName: firstKeepQuery, firstKeepReadName: firstKeepQuery + keepReads,
		baseName: `select ` + toBase + entryCheck, baseReadName: `select ` + toBase + entryCheck + readOnly,
		firstBaseName: firstBaseQuery, firstBaseReadName: firstBaseQuery + readOnly,
	}
)

// reportedNames are their names: of those that keep the path or not, for a schema whose OID is known or not, for reads or not.
var reportedNames = map[[3]bool]string{
	{true, true, true}: keepReadName, {true, true, false}: keepName, {true, false, true}: firstKeepReadName, {true, false, false}: firstKeepName,
	{false, true, true}: baseReadName, {false, true, false}: baseName, {false, false, true}: firstBaseReadName, {false, false, false}: firstBaseName,
}

// ownUnderPaths are the router's own queries that run under the paths of shards.
var ownUnderPaths = []string{endQuery, reportedQueries[keepName], reportedQueries[keepReadName]}

// KeepsPath reports whether a statement of its own goes without an entry, by the last reports of the server.
func (s *Session) KeepsPath(sc Scope) bool {
	known := s.entered[sc.path]
	return s.reports && sc.Keeps && known != nil && time.Since(known.at) < KeepFor &&
		s.Path() == sc.path && s.onlyReads() == sc.Reads
}

// Path returns the path that the session has by the last report of the server, empty if there is none.
func (s *Session) Path() string { return s.Conn.PgConn().ParameterStatus(statusPath) }

// onlyReads reports whether transactions of the session only read, unless they say otherwise.
func (s *Session) onlyReads() bool { return s.Conn.PgConn().ParameterStatus(statusReads) == "on" }

// mustWrite reports whether the session is to be taken back from reading before a message. Only an entry of [keepReads] has put it there,
// or the server itself: then what follows fails, as it would anywhere.
func (s *Session) mustWrite(sc Scope) bool {
	return s.reports && !sc.held && !sc.Reads && s.onlyReads()
}

// writeAgain takes the session back from reading. A transaction that has begun by then still only reads.
const writeAgain = "reset " + statusReads

// writingAgain does it before a message, in a transaction of its own.
var writingAgain = []string{"begin", writeAgain, "commit"}

// mayKeep reports whether a session that reports may go without an entry for a statement.
func (k *keptStatement) mayKeep() bool { return k != nil && k.desc.Name != "" && k.text.Shows() }
