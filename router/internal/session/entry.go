package session

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/sql"
)

// The entry is the query that stands before every statement of a shard, in the same transaction. It sets the search_path
// to the shard's ($1), local to that transaction, and fails, so that nothing after it runs, with 22023 unless
//
//   - the session's own path is the base path ($3). What ends the transaction (a COMMIT hidden in the text, a procedure that
//     commits) thus never meets another shard's tables: there is only the base path then, under which no shard's tables are
//     found;
//   - the shard's schema ($2) is the one that a first entry of this session has found ($4, its OID). The fence of a shard that
//     has moved away is another. Without a schema it fails with 3F000;
//   - the role has USAGE on it: Postgres would pass over such a schema and take a table of a schema behind it.
//
// Names are qualified, because the path that it runs under is not to be trusted.
const entryCheck = `pg_catalog.set_config('search_path', case
 when pg_catalog.current_setting('search_path') operator(pg_catalog.=) $3::pg_catalog.text
  and $2::pg_catalog.regnamespace::pg_catalog.oid operator(pg_catalog.=) $4::pg_catalog.oid
  and pg_catalog.has_schema_privilege($4, 'usage') then $1::pg_catalog.text
 else '"' end, true)`

// The first entry returns the OID of the schema, by which the entries after it know the schema. It fails
//
//   - with 42602 if the session's own path is not the base path;
//   - with 3F000 if the shard's schema does not exist or is a fence, and with 22012 if the role has no USAGE on it.
var firstEntryCheck = isThere(ifPathIs("$3")) + `,
 pg_catalog.set_config('search_path', $1, true)`

// shardOID is the OID of the shard's schema ($2).
const shardOID = `$2::pg_catalog.text::pg_catalog.regnamespace::pg_catalog.oid`

// isThere fails with 3F000 if there is no schema of a name, and with 22012 if the role has no USAGE on it.
func isThere(schema string) string {
	return `1 operator(pg_catalog./) pg_catalog.has_schema_privilege((` + schema + `)::pg_catalog.regnamespace::pg_catalog.oid, 'usage')::pg_catalog.int4`
}

// ifPathIs is [unlessFenced] while the session has one of the paths, and else a name that is none, which is 42602.
func ifPathIs(paths ...string) string {
	return `case when pg_catalog.current_setting('search_path') operator(pg_catalog.=) any (array[` + strings.Join(paths, ", ") +
		`]::pg_catalog.text[]) then ` + unlessFenced + ` else '' end`
}

// spelledBySet is the text that SET stores for a path of schemas, an array.
func spelledBySet(schemas string) string {
	return `(select pg_catalog.string_agg(pg_catalog.quote_ident(schema), ', ' order by nr) from pg_catalog.unnest(` + schemas + `::pg_catalog.text[]) with ordinality path(schema, nr))`
}

// unlessFenced is the shard's schema ($2), or a name that no schema has where that is a fence: see package move.
var unlessFenced = `$2::pg_catalog.text operator(pg_catalog.||) case when ` + sql.IsFence("$2::pg_catalog.text") + ` then '__moved' else '' end`

// readOnly holds the transaction to reading.
const readOnly = `, pg_catalog.set_config('transaction_read_only', 'on', true)`

var (
	entryQuery          = `select ` + entryCheck
	readEntryQuery      = `select ` + entryCheck + readOnly
	firstEntryQuery     = `select ` + shardOID + `, ` + firstEntryCheck
	firstReadEntryQuery = firstEntryQuery + readOnly

	// nextEntryQuery is the entry between the statements of a message. The path is still the shard's ($1), unless one of them has moved it
	// or has ended the transaction: then it fails with 42602.
	nextEntryQuery     = `select ` + isThere(ifPathIs("$1"))
	nextReadEntryQuery = nextEntryQuery + readOnly

	// afterSetQuery is nextEntryQuery where SET was the first entry of the message. SET stores the path in a spelling of its own, without
	// the quotes that a name does not need: the schemas of the path are $3.
	afterSetQuery = `select ` + isThere(ifPathIs("$1", spelledBySet("$3")))

	// inBlockQuery comes before the entry of a CALL or a DO that is not the first of its message, and fails with 25P01 unless there is a
	// transaction block. A function may have given the session the path of the shard, which then outlives a COMMIT. Behind that a procedure
	// could commit by itself, and the deferred triggers of what stands between the two would run where it has moved the path.
	inBlockQuery = `lock table pg_catalog.pg_namespace in access share mode`

	// heldEntryQuery is the entry of a message in a transaction of the caller's, where a function may have moved the path of
	// the session since the last one: it is put back. Nothing but a statement of its own, which has an entry before it, ends
	// such a transaction.
	heldEntryQuery = `select pg_catalog.set_config('search_path', $3, false), ` + isThere(unlessFenced) + `, pg_catalog.set_config('search_path', $1, true)`

	// pathQuery asks for the path in a group of reads: their answers are good if it is still the entry's.
	pathQuery = `select pg_catalog.current_setting('search_path')`

	// endQuery ends a transaction that may have written. Deferred triggers, and cursors WITH HOLD, run at the COMMIT, under the path
	// that the last statement has left.
	endQuery = `select pg_catalog.set_config('search_path', $1, true)`
)

const (
	entryName          = namePrefix + "entry"
	readEntryName      = namePrefix + "read_entry"
	firstEntryName     = namePrefix + "first_entry"
	firstReadEntryName = namePrefix + "first_read_entry"
	nextEntryName      = namePrefix + "next_entry"
	nextReadEntryName  = namePrefix + "next_read_entry"
	heldEntryName      = namePrefix + "held_entry"
	pathName           = namePrefix + "path"
	endName            = namePrefix + "end"

	inBlockTag = "LOCK TABLE" // of inBlockQuery
)

// ownQueries are the router's own statements, which each direct connection keeps prepared: of the entries that begin a message only
// those that it uses.
var ownQueries = map[string]string{
	nextEntryName: nextEntryQuery, nextReadEntryName: nextReadEntryQuery, heldEntryName: heldEntryQuery, pathName: pathQuery, endName: endQuery,
}

// beginQueries are the entries that begin a message where the server does not report the path; for others see [reportedQueries].
var beginQueries = map[string]string{
	entryName: entryQuery, readEntryName: readEntryQuery, firstEntryName: firstEntryQuery, firstReadEntryName: firstReadEntryQuery,
}

// baseTries is how many times a session's own path is reset for one message. Behind a pooler each try may meet another session, so
// later tries come after a pause.
const (
	baseTries = 50
	basePause = 2 * time.Millisecond // at most, from the fourth try on
)

// withBasePath calls do, which begins with an entry, and again once the path of the session has been put back.
func (s *Session) withBasePath(ctx context.Context, sc Scope, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if sc.held || try == baseTries || !PathMoved(err) {
			return err
		}
		if try > 3 {
			select {
			case <-time.After(rand.N(basePause)):
			case <-ctx.Done():
				return err
			}
		}
		if err := s.ResetPath(ctx); err != nil {
			return failure.BeforeSend(err)
		}
	}
}

// ResetPath puts the session's own path back. It is a message of its own: a transaction that rolls back would undo it.
func (s *Session) ResetPath(ctx context.Context) error {
	const query = `select pg_catalog.set_config('search_path', $1, false)`
	_, err := s.Conn.PgConn().ExecParams(ctx, query, [][]byte{[]byte(s.base)}, nil, nil, nil).Close()
	return err
}

// entered is what a first entry has found of a shard, and the values of the entries after it: the path, the schema, the base path and the
// OID of the schema.
type entered struct {
	values [4][]byte
	keep   [3][]byte // without the base path
	at     time.Time // before which the last entry was sent that has passed
}

// sendEntry sends the entry of a message, or with more of a statement that is not its first.
func (s *Session) sendEntry(to sender, sc Scope, more bool) {
	known := s.entered[sc.path]
	if known == nil {
		known = &entered{values: [4][]byte{[]byte(sc.path), []byte(sc.schema), []byte(s.base)}}
	}
	values, first := known.values[:], known.values[3] == nil
	if first {
		values = values[:3]
	}
	switch {
	case more && to.schemas != nil:
		to.params(afterSetQuery, [][]byte{values[0], values[1], to.schemas}, nil, nil, nil)
	case more && sc.Reads: // the path of the shard may have outlived a COMMIT
		s.own(to, nextReadEntryName, values[:2])
	case more:
		s.own(to, nextEntryName, values[:2])
	case sc.held:
		s.own(to, heldEntryName, values[:3])
	case s.reports && sc.Keeps && first:
		s.own(to, reportedNames[[3]bool{true, false, sc.Reads}], values[:2])
	case s.reports && sc.Keeps:
		s.ownUnder(to, s.at, reportedNames[[3]bool{true, true, sc.Reads}], known.keep[:])
	case s.reports:
		s.own(to, reportedNames[[3]bool{false, !first, sc.Reads}], values)
	case first && sc.Reads:
		s.own(to, firstReadEntryName, values)
	case first:
		s.own(to, firstEntryName, values)
	case sc.Reads:
		s.own(to, readEntryName, values)
	default:
		s.own(to, entryName, values)
	}
	s.at = ""
	if s.reports && sc.Keeps {
		s.at = sc.path
	}
}

// ReadEntry reads the answer to the entry of a message. A first one tells the OID of the shard's schema.
func (s *Session) ReadEntry(sc Scope, answer *pgconn.ResultReader) error {
	columns := answer.FieldDescriptions()
	if !s.pooled && len(columns) > 0 && columns[0].DataTypeOID == pgtype.OIDOID && answer.NextRow() {
		path, schema, oid := []byte(sc.path), []byte(sc.schema), slices.Clone(answer.Values()[0])
		s.entered[sc.path] = &entered{values: [4][]byte{path, schema, []byte(s.base), oid}, keep: [3][]byte{path, schema, oid}}
	}
	_, err := answer.Close()
	if known := s.entered[sc.path]; known != nil && err == nil {
		known.at = s.sending
	}
	return err
}

// sender takes queries that are sent together: a pgconn.Batch or a pgconn.Pipeline.
type sender struct {
	unprepared bool   // the router's own queries may be prepared no more
	schemas    []byte // an array of those in the path, if SET was the first entry

	batch    *pgconn.Batch // or:
	pipeline *pgconn.Pipeline
}

func batchSender(b *pgconn.Batch) sender { return sender{batch: b} }

func pipelineSender(p *pgconn.Pipeline) sender { return sender{pipeline: p} }

// params sends a query that is not prepared.
func (to *sender) params(sql string, values [][]byte, oids []uint32, formats, resultFormats []int16) {
	if to.batch != nil {
		to.batch.ExecParams(sql, values, oids, formats, resultFormats)
	} else {
		to.pipeline.SendQueryParams(sql, values, oids, formats, resultFormats)
	}
}

// byName sends one that is. In a pipeline it has the server describe the result of each: when pgx skips statements after an error
// there, it keeps their descriptions, and takes them for those of statements further on (pgx 5.12).
func (to *sender) byName(desc *pgconn.StatementDescription, values [][]byte, formats, resultFormats []int16) {
	if to.batch != nil {
		to.batch.ExecStatement(desc, values, formats, resultFormats)
	} else {
		to.pipeline.SendQueryPrepared(desc.Name, values, formats, resultFormats)
	}
}

// own sends one of the router's own queries.
func (s *Session) own(to sender, name string, values [][]byte) {
	if desc := s.ownStatements[name]; desc != nil && !to.unprepared {
		to.byName(desc, values, nil, nil)
		return
	}
	to.params(s.queryOf(name), values, nil, nil, nil)
}

// ownUnder sends one of the router's own queries that is likely to run under a path, and returns the name of what is sent. Where it can it is
// one that was prepared under that path: the server analyzes and plans a prepared statement again whenever it meets another path (inserts over
// 16 shards).
func (s *Session) ownUnder(to sender, path, name string, values [][]byte) string {
	if kept := s.statements.get(statementKey{path, s.queryOf(name)}); kept != nil && !to.unprepared {
		to.byName(kept.desc, values, nil, nil)
		return kept.desc.Name
	}
	s.own(to, name, values)
	return name
}

// ownFor returns the router's own queries that are likely to run under the path of a statement.
func (s *Session) ownFor(sc Scope) (queries []string) {
	if s.pooled || sc.held {
		return nil
	}
	if !sc.Reads && !sc.opens {
		queries = append(queries, endQuery)
	}
	if s.reports && sc.Keeps {
		queries = append(queries, reportedQueries[reportedNames[[3]bool{true, true, sc.Reads}]]) // takes the session to another shard
	}
	return queries
}

// beginQueries are the entries that begin a message of the session.
func (s *Session) beginQueries() map[string]string {
	if s.reports {
		return reportedQueries
	}
	return beginQueries
}

// queryOf returns one of the router's own queries.
func (s *Session) queryOf(name string) string {
	if query, ok := ownQueries[name]; ok {
		return query
	}
	return s.beginQueries()[name]
}

// enter sends an entry for a statement.
func (s *Session) enter(to *sender, sc Scope, more bool, sql string) {
	if sc.held && !more && sc.noQuery(sql) {
		to.params(sc.endOfTx(), nil, nil, nil, nil)
		to.schemas = schemasOf(sc.path)
		return
	}
	if more && callsProcedure(sql) {
		to.params(inBlockQuery, nil, nil, nil, nil)
	}
	s.sendEntry(*to, sc, more)
}

// mayCommit reports whether the Sync after so many statements may commit what they have written: outside a transaction of the
// caller's, and inside one if they end it and go on.
func (sc Scope) mayCommit(statements int) bool {
	return !sc.Reads && !sc.opens && (!sc.held || statements > 1 && sc.ends == nil)
}

// end sends endQuery after the statements of an implicit transaction, and returns its name.
func (s *Session) end(to sender, sc Scope) (name string) {
	to.unprepared = to.unprepared || s.endsUnprepared || sc.held
	path := [][]byte{[]byte(sc.path)}
	if known := s.entered[sc.path]; known != nil {
		path = known.values[:1]
	}
	return s.ownUnder(to, sc.path, endName, path)
}

// deallocating are words that begin statements which deallocate what is prepared.
var deallocating = []string{"deallocate", "discard"}

// endOfTx is [endQuery] in a transaction of the caller's, where it needs no preparation.
func (sc Scope) endOfTx() string { return "set local search_path = " + sc.path }

// prepareOwn prepares the router's own queries, in one round trip. A statement may have deallocated them.
func (s *Session) prepareOwn(ctx context.Context) error {
	pipeline := s.Conn.PgConn().StartPipeline(ctx)
	var names []string
	for _, queries := range []map[string]string{ownQueries, s.beginQueries()} {
		for name, query := range queries {
			names = append(names, name)
			pipeline.SendDeallocate(name)
			pipeline.SendPrepare(name, query, nil)
		}
	}
	pipeline.SendPipelineSync()
	err := pipeline.Flush()
	all := map[string]*pgconn.StatementDescription{}
	for err == nil {
		var result any
		if result, err = pipeline.GetResults(); err != nil {
			break
		}
		if desc, ok := result.(*pgconn.StatementDescription); ok {
			name := names[len(all)]
			desc.Name, desc.SQL = name, s.queryOf(name)
			all[name] = desc
		}
		if _, ok := result.(*pgconn.PipelineSync); ok {
			break
		}
	}
	if closeErr := pipeline.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		s.ownStatements = all
	}
	return err
}

// prepareMissing prepares the router's own queries, if the session prepares statements and has not prepared these.
func (s *Session) prepareMissing(ctx context.Context) error {
	if s.ownStatements != nil || s.pooled || s.host.Mode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	return s.prepareOwn(ctx)
}

// beforeQueries are words that begin statements which may have to come before any query of a transaction, or which Postgres
// takes after an error. They have an entry that is no query.
var beforeQueries = []string{"set", "commit", "end", "rollback", "abort", "savepoint", "release"}

// noQuery reports whether the entry of a statement is no query. Where nothing may be written SET has a query before it, after which
// Postgres does not let it make the transaction one that writes.
func (sc Scope) noQuery(sql string) bool {
	word := texts.FirstWord(sql)
	return slices.Contains(beforeQueries, word) && !(sc.Reads && word == "set")
}

// callsProcedure reports whether SQL is a CALL or a DO, which may commit by themselves unless they are in a transaction.
func callsProcedure(sql string) bool {
	word := texts.FirstWord(sql)
	return word == "call" || word == "do"
}
