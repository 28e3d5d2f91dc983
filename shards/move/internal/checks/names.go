package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// names are the distinct values of a column that name objects outside the shard.
type names struct {
	Table, Column, Of string
	Texts             []string
}

// ofShard has the condition, by type, that a part names an object of the shard. A shard that moves has no objects of
// other types.
var ofShard = map[string]string{
	"regclass":     "EXISTS (SELECT FROM pg_class c WHERE c.oid = part.v AND c.relnamespace = to_regnamespace($1))",
	"regtype":      "EXISTS (SELECT FROM pg_type t WHERE t.oid = part.v AND t.typnamespace = to_regnamespace($1))",
	"regproc":      "EXISTS (SELECT FROM pg_proc p WHERE p.oid = part.v AND p.pronamespace = to_regnamespace($1))",
	"regprocedure": "EXISTS (SELECT FROM pg_proc p WHERE p.oid = part.v AND p.pronamespace = to_regnamespace($1))",
	"regnamespace": "part.v = to_regnamespace($1)",
}

// unreadable has an expression, by type, for the reason why the copy could not read a part although it names an object
// of the shard.
var unreadable = map[string]string{
	"regclass": "(SELECT 'which a move makes after the rows' FROM pg_class c WHERE c.oid = part.v AND c.relnamespace = to_regnamespace($1) AND (c.relkind IN ('i', 'I') OR c.relname = 'next_id_seq'))",
	"regproc":  "(SELECT 'the name of several functions' FROM pg_proc p WHERE p.oid = part.v AND to_regproc(part.v::text) IS DISTINCT FROM part.v)",
}

// readNames reads values that name objects. Values that the copy could not read are problems; [Shard.namesOnTarget]
// looks for those that name objects outside the shard.
func (s *Shard) readNames(ctx context.Context, conn *pgx.Conn) error {
	var err error
	if s.named, err = rows.Parts(ctx, conn, s.Schema, rows.Named); err != nil {
		return err
	}
	for _, p := range s.named {
		ours, why := cmp.Or(ofShard[p.Of], "false"), cmp.Or(unreadable[p.Of], "NULL")
		query := fmt.Sprintf(`SELECT DISTINCT part.v::text, coalesce(%[1]s, '') FROM (SELECT %[2]s FROM %[3]s) part (v) WHERE part.v IS NOT NULL AND $1::text <> '' AND (NOT %[4]s OR %[1]s IS NOT NULL) ORDER BY 1`, why, p.Value, p.From, ours)
		found, err := conn.Query(ctx, query, s.Schema)
		if err != nil {
			return err
		}
		v := names{Table: p.Table, Column: p.Column, Of: p.Of}
		var text string
		_, err = pgx.ForEachRow(found, []any{&text, &why}, func() error {
			if why != "" {
				s.problem("column %s of %s has the %s %s, %s: expected none", v.Column, v.Table, v.Of, text, why)
			} else {
				v.Texts = append(v.Texts, text)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("column %s of %s: %w", p.Column, p.Table, err)
		}
		if len(v.Texts) > 0 {
			s.names = append(s.names, v)
		}
	}
	numbers, err := rows.Parts(ctx, conn, s.Schema, rows.Numbers)
	for _, p := range numbers {
		if p.Of != "oid" { // large objects keep their OIDs
			s.note("column %s of %s is of type %s: its values move as they are, and mean something only on this host", p.Column, p.Table, p.Type)
		}
	}
	return err
}

// namesOnTarget looks for the named objects on the target: it reads the values as the copy will.
func (s *Shard) namesOnTarget(ctx context.Context, conn *pgx.Conn, f *Found) error {
	for _, n := range s.names {
		problems := len(f.Problems)
		if err := n.onTarget(ctx, conn, f, problems+mostProblems); err != nil {
			return err
		}
	}
	return nil
}

// mostProblems is the number of values of a column that are reported.
const mostProblems = 10

// onTarget reads all values at once. If the target refuses one, it reads both halves, until there are most problems.
func (n names) onTarget(ctx context.Context, conn *pgx.Conn, f *Found, most int) error {
	if len(f.Problems) >= most {
		return nil
	}
	here, err := session.Texts(ctx, conn, `SELECT v::text FROM unnest($1::text[]::text::`+n.Of+`[]) WITH ORDINALITY AS t (v, n) ORDER BY n`, n.Texts)
	var pg *pgconn.PgError
	refused := errors.As(err, &pg) && (pg.Code[:2] == "42" || pg.Code[:2] == "22")
	switch {
	case refused && len(n.Texts) > 1:
		first, second, half := n, n, len(n.Texts)/2
		first.Texts, second.Texts = n.Texts[:half], n.Texts[half:]
		if err := first.onTarget(ctx, conn, f, most); err != nil {
			return err
		}
		return second.onTarget(ctx, conn, f, most)
	case refused:
		f.problem("column %s of %s has the %s %s, which the target does not have: expected it there, or no such row (%s)", n.Column, n.Table, n.Of, n.Texts[0], pg.Message)
		return nil
	case err != nil:
		return err
	}
	for i, text := range n.Texts {
		if here[i] != text && len(f.Problems) < most {
			f.problem("column %s of %s has the %s %s, which is %s on the target: expected no such row", n.Column, n.Table, n.Of, text, here[i])
		}
	}
	return nil
}

// NamesOnTarget finds objects that the rows of a shard name and that are missing on the target, and names that cannot move.
func NamesOnTarget(ctx context.Context, source, target *pgx.Conn, schema string) ([]string, error) {
	s := &Shard{Schema: schema}
	err := s.readNames(ctx, source)
	if err == nil {
		err = s.namesOnTarget(ctx, target, &s.Found)
	}
	return s.Problems, err
}

// namesBackQuery finds objects of the shard whose names cannot come back: Postgres finds its own object of the same
// name first. Its parameters: the schema, and the columns with names.
const namesBackQuery = `
SELECT format('%I has the name of one of Postgres''s own, and column %s has names, so there is no way back for it: expected another name, or a move without --rollback-for', c.relname, ($2::text[])[1])
FROM pg_class c JOIN pg_class own ON own.relname = c.relname AND own.relnamespace = 'pg_catalog'::regnamespace WHERE c.relnamespace = to_regnamespace($1) AND cardinality($2) > 0
UNION ALL
SELECT format('type %I has the name of one of Postgres''s own, and column %s has names, so there is no way back for it: expected another name, or a move without --rollback-for', t.typname, ($2::text[])[1])
FROM pg_type t JOIN pg_type own ON own.typname = t.typname AND own.typnamespace = 'pg_catalog'::regnamespace
WHERE t.typnamespace = to_regnamespace($1) AND t.typname NOT IN (SELECT relname FROM pg_class WHERE relnamespace = t.typnamespace) AND cardinality($2) > 0`

// namesBack finds columns whose names cannot come back. The name of the shard's schema is the fence's until the shard
// is back.
func (s *Shard) namesBack(ctx context.Context, conn *pgx.Conn, f *Found) error {
	named := []string{}
	for _, p := range s.named {
		if p.Of == "regnamespace" {
			f.problem("column %s of %s is of type %s, whose values name the shard's schema, so there is no way back for it: expected another type, or a move without --rollback-for", p.Column, p.Table, p.Type)
			continue
		}
		named = append(named, p.Column+" of "+p.Table)
	}
	hidden, err := session.Texts(ctx, conn, namesBackQuery, s.Schema, named)
	for _, text := range hidden {
		f.problem("%s", text)
	}
	return err
}
