package queries

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// ErrNoStatistics says that pg_stat_statements cannot be read.
var ErrNoStatistics = errors.New("pg_stat_statements cannot be read")

// Read returns the schema to read statements against: views and functions are read in tx, that of [adopt.Look] or [adopt.Read].
func Read(ctx context.Context, tx pgx.Tx, plan *adopt.Plan) (*Schema, error) {
	s := &Schema{Plan: plan, Views: map[tables.Name]string{}, functions: map[string]string{}}
	for _, f := range plan.Findings {
		if f.Kind != "function" {
			continue
		}
		name, _, _ := strings.Cut(f.Object, "(")
		if parts, err := tables.Split(name); err == nil {
			s.functions[parts[len(parts)-1]] = f.Text[strings.Index(f.Text, "names ")+len("names "):]
		}
	}
	if _, err := tx.Exec(ctx, "savepoint views"); err != nil { // a definition is read with locks on its tables
		return nil, err
	}
	const query = `
		select n.nspname::text, c.relname::text, pg_get_viewdef(c.oid)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'v' and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'kiloshard')
		and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	var name tables.Name
	var definition string
	if _, err := pgx.ForEachRow(rows, []any{&name.Schema, &name.Table, &definition}, func() error {
		s.Views[name] = definition
		return nil
	}); err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	_, err = tx.Exec(ctx, "rollback to savepoint views; release savepoint views")
	return s, err
}

// ReadStatistics returns the statements of this database that pg_stat_statements has, with calls and time, and how many of them the
// role may not see. The error is [ErrNoStatistics] where the extension is missing, not loaded or not readable: the transaction goes on.
func ReadStatistics(ctx context.Context, tx pgx.Tx) (all []Statement, hidden int64, err error) {
	if _, err := tx.Exec(ctx, "savepoint statistics"); err != nil {
		return nil, 0, err
	}
	defer func() {
		if _, rollback := tx.Exec(ctx, "rollback to savepoint statistics; release savepoint statistics"); rollback != nil {
			err = errors.Join(err, rollback)
		}
	}()
	var schema string
	const where = `select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`
	if err := tx.QueryRow(ctx, where).Scan(&schema); errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, fmt.Errorf("%w: the extension is not in this database", ErrNoStatistics)
	} else if err != nil {
		return nil, 0, err
	}
	query := `
		select query, sum(calls)::bigint, sum(total_exec_time) / 1000, bool_or(queryid is null), count(*)
		from ` + pgx.Identifier{schema, "pg_stat_statements"}.Sanitize() + `
		where dbid = (select oid from pg_database where datname = current_database()) and query is not null
		group by query`
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	var s Statement
	var concealed bool
	var entries int64
	_, err = pgx.ForEachRow(rows, []any{&s.SQL, &s.Calls, &s.Seconds, &concealed, &entries}, func() error {
		if concealed {
			hidden += entries
			return nil
		}
		all = append(all, s)
		return nil
	})
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		err = fmt.Errorf("%w: %s", ErrNoStatistics, pg.Message)
	}
	return all, hidden, err
}

// typed is a constant that pg_stat_statements has replaced, behind the name of its type: no parser reads interval $1.
var typed = regexp.MustCompile(`(?i)\b(interval|date|time|timestamp|timestamptz)\s+(\$\d+)`)

// Classify sets the class of each statement. ctx ends it between two of them.
func (s *Schema) Classify(ctx context.Context, statements []Statement) error {
	for i := range statements {
		if err := ctx.Err(); err != nil {
			return err
		}
		sql := statements[i].SQL
		statements[i].classify(s, sql)
		statements[i].SQL = masked(sql)
	}
	return nil
}

// classify sets the class by a text of the statement.
func (st *Statement) classify(s *Schema, sql string) {
	all, err := s.read(typed.ReplaceAllString(sql, "$2::$1"))
	if err != nil {
		st.Class, st.Why = Unread, err.Error()
		return
	}
	st.Class = Elsewhere
	for i, a := range all {
		class, why := a.verdict()
		if i == 0 || slices.Index(Classes, class) < slices.Index(Classes, st.Class) {
			st.Class, st.Why = class, why
		}
		st.ChangesKey = st.ChangesKey || a.moves
	}
}
