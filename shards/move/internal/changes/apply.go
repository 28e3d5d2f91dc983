package changes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
)

// applier applies messages in a transaction of the copy.
type applier struct {
	schema      string
	tx          pgx.Tx
	done        LSN // the copy has all transactions that were committed before
	skip        bool
	end         LSN // of the last transaction that is applied
	seen        LSN // of the last transaction
	relations   map[uint32]*relation
	fixed       map[[2]string]bool   // tables and columns that an UPDATE cannot set
	types       map[[2]string]string // of columns
	partitioned map[string][]string  // partitioned tables, as SQL, that refer to a table; nil until a TRUNCATE
	batch       *pgconn.Batch
	queued      int
}

// readColumns reads the types of columns, and which are GENERATED ALWAYS AS IDENTITY.
func (a *applier) readColumns(ctx context.Context) error {
	a.fixed, a.types = map[[2]string]bool{}, map[[2]string]string{}
	const query = `SELECT c.relname::text, t.attname::text, t.attidentity = 'a', format_type(t.atttypid, -1) FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid
		WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND t.attnum > 0 AND NOT t.attisdropped`
	rows, err := a.tx.Query(ctx, query, a.schema)
	if err != nil {
		return err
	}
	var at [2]string // table and column
	var fixed bool
	var sqlType string
	_, err = pgx.ForEachRow(rows, []any{&at[0], &at[1], &fixed, &sqlType}, func() error { a.fixed[at], a.types[at] = fixed, sqlType; return nil })
	return err
}

// partitionedQuery returns tables, and the partitioned tables that refer to them.
var partitionedQuery = `
	SELECT DISTINCT t.relname::text, format('%I.%I', $1::text, p.relname)
	FROM pg_class p JOIN pg_constraint con ON con.conrelid = p.oid AND con.contype = 'f' JOIN pg_class t ON t.oid = con.confrelid
	WHERE ` + catalog.In("pg_class", "p.oid", "$1::regnamespace") + ` AND p.relkind = 'p' AND t.relkind = 'r' AND t.relnamespace = p.relnamespace`

func (a *applier) readPartitioned(ctx context.Context) error {
	a.partitioned = map[string][]string{}
	rows, err := a.tx.Query(ctx, partitionedQuery, a.schema)
	if err != nil {
		return err
	}
	var table, partitioned string
	_, err = pgx.ForEachRow(rows, []any{&table, &partitioned}, func() error {
		a.partitioned[table] = append(a.partitioned[table], partitioned)
		return nil
	})
	return err
}

// apply queues the changes of one message, and flushes them if there are many.
func (a *applier) apply(ctx context.Context, data []byte) error {
	r := &reader{data: data}
	switch kind := r.byte(); kind {
	case 'B':
		a.skip = r.lsn() < a.done
	case 'C':
		_ = r.bytes(9) // flags, and where the commit begins
		a.seen = r.lsn()
		if !a.skip {
			a.end = a.seen
		}
	case 'R':
		oid, rel := r.relation()
		for i, c := range rel.columns {
			rel.columns[i].sqlType = a.types[[2]string{rel.name, c.name}]
		}
		a.relations[oid] = rel
	case 'I', 'U', 'D':
		oid := r.uint32()
		rel := a.relations[oid]
		if rel == nil {
			return fmt.Errorf("bug: pgoutput has not named table %d", oid)
		}
		var before, after []value
		if what := r.byte(); what == 'N' {
			after = r.tuple()
		} else if before = r.tuple(); kind == 'U' {
			_ = r.byte()
			after = r.tuple()
		}
		if r.err == nil && !a.skip {
			a.change(kind, rel, before, after)
		}
	case 'T':
		if a.partitioned == nil {
			if err := a.readPartitioned(ctx); err != nil {
				return err
			}
		}
		a.truncate(r)
	}
	if r.err != nil {
		return r.err
	}
	if a.queued >= batchChanges {
		return a.flush(ctx)
	}
	return nil
}

// change queues the change of one row. before has its known old values; an UPDATE without before has not changed the key.
func (a *applier) change(kind byte, rel *relation, before, after []value) {
	s := &statement{}
	table := pgx.Identifier{a.schema, rel.name}.Sanitize()
	switch kind {
	case 'I':
		s.WriteString("INSERT INTO " + table + " (" + strings.Join(rel.names(), ", ") + ") OVERRIDING SYSTEM VALUE VALUES (")
		for i, v := range after {
			if i > 0 {
				s.WriteString(", ")
			}
			s.add(v)
		}
		s.WriteString(")")
		if len(after) == 0 {
			s = &statement{}
			s.WriteString("INSERT INTO " + table + " DEFAULT VALUES")
		}
	case 'U':
		if a.replaces(rel, before) {
			a.replace(s, rel, table, before, after)
			break
		}
		s.WriteString("UPDATE ONLY " + table + " SET ")
		first := true
		for i, c := range rel.columns {
			if !after[i].known || before == nil && c.key || a.fixed[[2]string{rel.name, c.name}] {
				continue
			}
			if !first {
				s.WriteString(", ")
			}
			first = false
			s.WriteString(pgx.Identifier{c.name}.Sanitize() + " = ")
			s.add(after[i])
		}
		if first { // the row has no columns but its key
			return
		}
		if before == nil {
			before = after
		}
		s.where(rel, table, before)
	case 'D':
		s.WriteString("DELETE FROM ONLY " + table)
		s.where(rel, table, before)
	}
	a.queue(s)
}

// replaces reports whether an UPDATE may have changed a column that an UPDATE cannot set to a value, as SET … = DEFAULT
// does.
func (a *applier) replaces(rel *relation, before []value) bool {
	for _, c := range rel.columns {
		if a.fixed[[2]string{rel.name, c.name}] && (before != nil || !c.key) {
			return true
		}
	}
	return false
}

// replace writes an UPDATE as a DELETE and an INSERT, which gives all columns their values.
func (a *applier) replace(s *statement, rel *relation, table string, before, after []value) {
	if before == nil {
		before = after
	}
	s.WriteString("WITH old AS (DELETE FROM ONLY " + table)
	s.where(rel, table, before)
	s.WriteString(" RETURNING *) INSERT INTO " + table + " (" + strings.Join(rel.names(), ", ") + ") OVERRIDING SYSTEM VALUE SELECT ")
	for i, column := range rel.names() {
		if i > 0 {
			s.WriteString(", ")
		}
		if after[i].known {
			s.add(after[i])
		} else {
			s.WriteString("old." + column)
		}
	}
	s.WriteString(" FROM old")
}

// truncate queues a TRUNCATE. The message names all tables that it cascaded to, and children, but no partitioned
// tables: truncate adds those that refer to a table. The message names all their partitions, or the TRUNCATE would have
// failed.
func (a *applier) truncate(r *reader) {
	tables := make([]string, min(r.uint32(), 65535))
	named := len(tables)
	restart := ""
	if r.byte()&2 != 0 {
		restart = " RESTART IDENTITY"
	}
	for i := range named {
		if rel := a.relations[r.uint32()]; rel != nil {
			tables[i] = "ONLY " + pgx.Identifier{a.schema, rel.name}.Sanitize()
			tables = append(tables, a.partitioned[rel.name]...)
		}
	}
	if r.err == nil && !a.skip {
		s := &statement{}
		s.WriteString("TRUNCATE " + strings.Join(tables, ", ") + restart)
		a.queue(s)
	}
}

// statement is text with parameters.
type statement struct {
	strings.Builder
	values [][]byte
}

// add writes a parameter for a value.
func (s *statement) add(v value) {
	s.values = append(s.values, v.text)
	fmt.Fprintf(s, "$%d", len(s.values))
}

// where writes the condition for a row, from its known values. It finds one row, although a table whose identity is the
// whole row may have two equal ones. For such a table it compares texts: 1.0 is equal to 1.00, and not all types have
// an equality. A composite of nulls is not NULL.
func (s *statement) where(rel *relation, table string, row []value) {
	if rel.full {
		s.WriteString(" WHERE ctid OPERATOR(pg_catalog.=) (SELECT ctid FROM ONLY " + table)
	}
	word := " WHERE "
	for i, c := range rel.columns {
		if !c.key {
			continue
		}
		column := pgx.Identifier{c.name}.Sanitize()
		s.WriteString(word)
		word = " AND "
		if row[i].text == nil {
			s.WriteString(column + " IS NOT DISTINCT FROM NULL")
			continue
		}
		if rel.full {
			column += " IS DISTINCT FROM NULL AND pg_catalog.concat(" + column + ")"
		}
		s.WriteString(column)
		s.WriteString(" OPERATOR(pg_catalog.=) ")
		s.add(row[i])
		if !rel.full { // else Postgres might compare a name as a number
			s.WriteString("::" + c.sqlType)
		}
	}
	if rel.full {
		s.WriteString(" LIMIT 1)")
	}
}

func (a *applier) queue(s *statement) {
	if a.batch == nil {
		a.batch = &pgconn.Batch{}
		a.batch.ExecParams(pathTo(a.schema), nil, nil, nil, nil)
	}
	a.batch.ExecParams(s.String(), s.values, nil, nil, nil)
	a.queued++
}

// flush sends the queued statements.
func (a *applier) flush(ctx context.Context) error {
	if a.queued == 0 {
		return nil
	}
	a.batch.ExecParams("SET LOCAL search_path = pg_catalog, pg_temp", nil, nil, nil, nil)
	_, err := a.tx.Conn().PgConn().ExecBatch(ctx, a.batch).ReadAll()
	a.batch, a.queued = nil, 0
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "40", "53", "55", "57", "58", "XX": // errors of the server's state
			return err
		}
		return &Error{err}
	}
	return err
}
