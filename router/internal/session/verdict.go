package session

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// When a text is prepared for the first time, the server's catalog is asked about it, in the same transaction. To prepare a statement the
// server locks each relation that it names, and those that a view among them names: so pg_locks has them all.

// clearPath has the names in [verdictQuery] mean what they say, until the transaction ends.
const clearPath = `select pg_catalog.set_config('search_path', '', true)`

// notVouched is true of a function p that may do anything. Postgres's own functions are known: see volatileOnes. One in C is a superuser's,
// and taken at its word if it does not say that it is volatile.
const notVouched = `p.oid >= 16384 and not (p.prolang in (12, 13) and p.provolatile <> 'v' and p.prokind <> 'a')`

// harmless are the functions of Postgres that are volatile, and change nothing.
const harmless = `'random', 'random_normal', 'clock_timestamp', 'timeofday', 'gen_random_uuid', 'uuidv4', 'uuidv7'`

// verdictQuery asks about a statement that was just prepared for a schema ($1), with the schemas of its path ($2) and its words ($3):
//
//   - whether it names relations of the schema, and of no other but pg_catalog, and none of Kiloshard's own, which a copy that is on its way
//     does not guard;
//   - whether the catalog vouches for it. Each relation is a table, a sequence or a view, and no rule and no policy of it, no function of the
//     path by the name of one of its words, no operator of the path, no cast, and no domain by one of its words calls a
//     function that may do anything. What else Postgres calls for a statement, such as the functions of a type, is in C.
const verdictQuery = `with named as (
  select distinct c.oid, c.relname, c.relkind, n.nspname from pg_catalog.pg_locks l
  join pg_catalog.pg_class c on c.oid = l.relation join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where l.locktype = 'relation' and l.pid = pg_backend_pid()
), own as (
  select oid, relkind from named where nspname not in ('pg_catalog', 'information_schema')
), rules as (
  select 'pg_catalog.pg_rewrite'::regclass as class, r.oid, concat(r.ev_action, r.ev_qual) as tree
  from pg_catalog.pg_rewrite r join own on r.ev_class = own.oid
  union all
  select 'pg_catalog.pg_policy'::regclass, p.oid, concat(p.polqual, p.polwithcheck)
  from pg_catalog.pg_policy p join own on p.polrelid = own.oid
), path as (
  select oid from pg_catalog.pg_namespace where nspname = any ($2::name[])
)
select (select bool_or(nspname = $1::name) and bool_and(nspname in ($1::name, 'pg_catalog') and relname !~ '^(kiloshard_|schema_version$)') from named),
not exists (select from own where relkind not in ('r', 'p', 'm', 'v', 'S'))
and not exists (select from rules r join pg_catalog.pg_depend d on d.classid = r.class and d.objid = r.oid
  left join pg_catalog.pg_operator o on d.refclassid = 'pg_catalog.pg_operator'::regclass and o.oid = d.refobjid
  join pg_catalog.pg_proc p on p.oid = case when d.refclassid = 'pg_catalog.pg_proc'::regclass then d.refobjid else o.oprcode::oid end
  where ` + notVouched + `)
and not exists (select from rules r, regexp_matches(r.tree, ':funcid (\d+)', 'g') m (ids), pg_catalog.pg_proc p
  where p.oid = m.ids[1]::oid and p.oid < 16384 and p.provolatile = 'v' and p.proname not in (` + harmless + `))
and not exists (select from pg_catalog.pg_proc p where p.proname = any ($3::name[]) and p.pronamespace in (select oid from path)
  and p.prorettype <> 'pg_catalog.trigger'::regtype and ` + notVouched + `)
and not exists (select from pg_catalog.pg_operator o join pg_catalog.pg_proc p on p.oid = o.oprcode
  where o.oprnamespace in (select oid from path) and ` + notVouched + `)
and not exists (select from pg_catalog.pg_cast c join pg_catalog.pg_proc p on p.oid = c.castfunc where ` + notVouched + `)
and not exists (select from pg_catalog.pg_type t join pg_catalog.pg_constraint k on k.contypid = t.oid
  join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_constraint'::regclass and d.objid = k.oid and d.refclassid = 'pg_catalog.pg_proc'::regclass
  join pg_catalog.pg_proc p on p.oid = d.refobjid where t.typname = any ($3::name[]) and ` + notVouched + `)`

// asksVerdictOf reports whether the catalog is to be asked about a statement of a caller's that is prepared.
func (s *Session) asksVerdictOf(sc Scope, key statementKey) bool {
	return !key.own() && len(key.sql) <= texts.LongText && s.asksVerdict(sc, s.host.Texts.Of(key.sql))
}

// asksVerdict reports whether the catalog is to be asked about a text, when that is prepared.
func (s *Session) asksVerdict(sc Scope, text *texts.Text) bool {
	return sc.Single && (sc.Reads || sc.Keeps && s.reports) && !text.Known()
}

// sendVerdict asks.
func (s *Session) sendVerdict(to sender, sc Scope, sql string) {
	to.params(clearPath, nil, nil, nil, nil)
	values := [][]byte{[]byte(sc.schema), schemasOf(sc.path), arrayOf(texts.Words(sql))}
	to.params(verdictQuery, values, nil, nil, nil)
}

// verdict is the answer.
type verdict struct{ given, shows, vouched bool }

// read reads the answer, if it is one.
func (v *verdict) read(result *pgconn.ResultReader) {
	if len(result.FieldDescriptions()) == 2 && result.NextRow() {
		row := result.Values()
		*v = verdict{true, string(row[0]) == "t", string(row[1]) == "t"}
	}
}

// learn has a text know the answer. What shows that its shard is gone only reads or changes rows: SELECT INTO has no columns.
func (v verdict) learn(text *texts.Text, desc *pgconn.StatementDescription) {
	switch texts.FirstWord(desc.SQL) {
	case "insert", "update", "delete", "merge":
	case "select", "values", "table", "with":
		v.shows = v.shows && len(desc.Fields) > 0
	default:
		v.shows = false
	}
	text.Learn(v.shows, v.vouched)
}

// judge asks the catalog about a read where statements are not prepared, once it is seen to come again. What goes wrong shows when it
// is sent.
func (s *Session) judge(ctx context.Context, sc Scope, st *statement) {
	text := s.host.Texts.Of(st.sql)
	if st.mode == pgx.QueryExecModeCacheStatement || !sc.Reads || !s.asksVerdict(sc, text) || !text.Seen() || len(st.sql) > texts.LongText {
		return
	}
	pipeline := s.Conn.PgConn().StartPipeline(ctx)
	to := pipelineSender(pipeline)
	s.enter(&to, sc, false, "")
	pipeline.SendPrepare("", st.sql, nil)
	s.sendVerdict(to, sc, st.sql)
	pipeline.SendPipelineSync()
	var answer prepared
	err := pipeline.Flush()
	if err == nil {
		answer, err = s.readPrepared(pipeline, &sc)
	}
	if closeErr := pipeline.Close(); err != nil || closeErr != nil || answer.err != nil {
		return
	}
	answer.desc.SQL = st.sql
	answer.verdict.learn(text, answer.desc)
}

// settle has a read be one only if the catalog vouches for it. Any other statement is run once, as a write.
func (s *Session) settle(sc Scope, st *statement) Scope {
	if !sc.Guess {
		return sc
	}
	text := s.host.Texts.Of(st.given)
	if st.given != st.sql {
		text.LearnFrom(s.host.Texts.Of(st.sql))
	}
	sc.Reads = text.Repeats()
	return sc
}
