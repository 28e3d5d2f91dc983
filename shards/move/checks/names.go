package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/move/rows"
)

// value is one that names something which is not the shard's.
type value struct{ Table, Column, Of, Text string }

// mostValues is how many different ones of a column are looked at. One that is not is found by the copy.
const mostValues = 100

// ofShard says of a part whether it is of the shard. What other types name cannot be in one that moves.
var ofShard = map[string]string{
	"regclass":     "EXISTS (SELECT FROM pg_class c WHERE c.oid = part.v AND c.relnamespace = to_regnamespace($1))",
	"regtype":      "EXISTS (SELECT FROM pg_type t WHERE t.oid = part.v AND t.typnamespace = to_regnamespace($1))",
	"regproc":      "EXISTS (SELECT FROM pg_proc p WHERE p.oid = part.v AND p.pronamespace = to_regnamespace($1))",
	"regprocedure": "EXISTS (SELECT FROM pg_proc p WHERE p.oid = part.v AND p.pronamespace = to_regnamespace($1))",
	"regnamespace": "part.v = to_regnamespace($1)",
}

// unreadable says of a part why the copy could not read it, although it is of the shard.
var unreadable = map[string]string{
	"regclass": "(SELECT 'which a move makes after the rows' FROM pg_class c WHERE c.oid = part.v AND c.relnamespace = to_regnamespace($1) AND (c.relkind = 'i' OR c.relname = 'next_id_seq'))",
	"regproc":  "(SELECT 'the name of several functions' FROM pg_proc p WHERE p.oid = part.v AND to_regproc(part.v::text) IS DISTINCT FROM part.v)",
}

// readNames reads values that name something: those that the copy could not read are problems, and the target is asked for those of what is not
// the shard's.
func (s *Shard) readNames(ctx context.Context, conn *pgx.Conn) error {
	var err error
	if s.named, err = rows.Parts(ctx, conn, s.Schema, rows.Named); err != nil {
		return err
	}
	for _, p := range s.named {
		ours, why := cmp.Or(ofShard[p.Of], "false"), cmp.Or(unreadable[p.Of], "NULL")
		query := fmt.Sprintf(`SELECT DISTINCT part.v::text, coalesce(%[1]s, '') FROM (SELECT %[2]s FROM %[3]s) part (v) WHERE part.v IS NOT NULL AND $1::text <> '' AND (NOT %[4]s OR %[1]s IS NOT NULL) ORDER BY 1 LIMIT %[5]d`, why, p.Value, p.From, ours, mostValues)
		found, err := conn.Query(ctx, query, s.Schema)
		if err != nil {
			return err
		}
		v := value{Table: p.Table, Column: p.Column, Of: p.Of}
		_, err = pgx.ForEachRow(found, []any{&v.Text, &why}, func() error {
			if why != "" {
				s.problem("column %s of %s has the %s %s, %s: expected none", v.Column, v.Table, v.Of, v.Text, why)
			} else {
				s.names = append(s.names, v)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("column %s of %s: %w", p.Column, p.Table, err)
		}
	}
	numbers, err := rows.Parts(ctx, conn, s.Schema, rows.Numbers)
	for _, p := range numbers {
		if p.Of != "oid" { // large objects keep theirs
			s.note("column %s of %s is of type %s: its values move as they are, and mean something only on this host", p.Column, p.Table, p.Type)
		}
	}
	return err
}

// namesOnTarget asks the target for what is named, by reading each value as the copy will.
func (s *Shard) namesOnTarget(ctx context.Context, conn *pgx.Conn, f *Found) error {
	for _, v := range s.names {
		result := conn.PgConn().ExecParams(ctx, "SELECT $1::"+v.Of+"::text", [][]byte{[]byte(v.Text)}, nil, nil, nil).Read()
		var refused *pgconn.PgError
		switch {
		case errors.As(result.Err, &refused) && (refused.Code[:2] == "42" || refused.Code[:2] == "22"):
			f.problem("column %s of %s has the %s %s, which the target does not have: expected it there, or no such row (%s)", v.Column, v.Table, v.Of, v.Text, refused.Message)
		case result.Err != nil:
			return result.Err
		case string(result.Rows[0][0]) != v.Text:
			f.problem("column %s of %s has the %s %s, which is %s on the target: expected no such row", v.Column, v.Table, v.Of, v.Text, result.Rows[0][0])
		}
	}
	return nil
}

// namesBackQuery finds what keeps names from coming back as they are: one of the shard's schema is that of the fence until then, and one of
// Postgres's own is found before that of the shard. Its parameters: the schema, and the columns with names.
const namesBackQuery = `
SELECT format('%I has the name of one of Postgres''s own, and column %s has names, so there is no way back for it: expected another name, or a move without --rollback-for', c.relname, ($2::text[])[1])
FROM pg_class c JOIN pg_class own ON own.relname = c.relname AND own.relnamespace = 'pg_catalog'::regnamespace WHERE c.relnamespace = to_regnamespace($1) AND cardinality($2) > 0
UNION ALL
SELECT format('type %I has the name of one of Postgres''s own, and column %s has names, so there is no way back for it: expected another name, or a move without --rollback-for', t.typname, ($2::text[])[1])
FROM pg_type t JOIN pg_type own ON own.typname = t.typname AND own.typnamespace = 'pg_catalog'::regnamespace
WHERE t.typnamespace = to_regnamespace($1) AND t.typname NOT IN (SELECT relname FROM pg_class WHERE relnamespace = t.typnamespace) AND cardinality($2) > 0`

// namesBack finds columns whose names cannot come back.
func (s *Shard) namesBack(ctx context.Context, conn *pgx.Conn, f *Found) error {
	named := []string{}
	for _, p := range s.named {
		if p.Of == "regnamespace" {
			f.problem("column %s of %s is of type %s, whose values name the shard's schema, so there is no way back for it: expected another type, or a move without --rollback-for", p.Column, p.Table, p.Type)
			continue
		}
		named = append(named, p.Column+" of "+p.Table)
	}
	hidden, err := texts(ctx, conn, namesBackQuery, s.Schema, named)
	for _, text := range hidden {
		f.problem("%s", text)
	}
	return err
}
