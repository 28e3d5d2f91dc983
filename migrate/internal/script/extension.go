package script

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
)

// Hint gives the server's error about an unknown type or function a hint if an extension has it that is not in the
// shards' search_path: in another schema of the host, or one by this name that the server could make. It does not propose the name with its schema:
// without the schema in the search_path the operators of the type are not found either.
func Hint(ctx context.Context, s *session.Session, text string, err error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42704" && pg.Code != "42883" || s.Conn.IsClosed() {
		return
	}
	at, ok := Offset(text, pg.Position)
	name := nameAt(text, at)
	if !ok || name == "" {
		return
	}
	query := fmt.Sprintf(`
		select coalesce((
			select min(format('extension %%s has it, in schema %%s: put "extensions: [%%s]" into the config', e.extname, n.nspname,
				case n.nspname when 'public' then e.extname::text else format('{name: %%s, schema: %%s}', e.extname, n.nspname) end))
			from pg_depend d join pg_extension e on d.refclassid = 'pg_extension'::regclass and e.oid = d.refobjid join pg_namespace n on n.oid = e.extnamespace
			left join pg_type t on d.classid = 'pg_type'::regclass and t.oid = d.objid
			left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
			where d.deptype = 'e' and coalesce(t.typname, p.proname) = %[1]s and n.nspname <> 'pg_catalog'
		), (
			select format('for extension %%1$s put "extensions: [%%1$s]" into the config, and run kiloshard create', a.name) from pg_available_extensions a
			where a.name = %[1]s and not exists (select from pg_extension e where e.extname = a.name)
		), '')`, sqltext.Quote(name))
	if hint, err := s.ValueNow(ctx, query); err == nil && hint != "" {
		pg.Hint = hint
	}
}

// nameAt returns the name at an offset of a text, without a schema; empty if there is none.
func nameAt(text string, at int) string {
	for t := range sqltext.Tokens(text) {
		if t.Start == at && !strings.HasPrefix(text[sqltext.SkipSpace(text, t.End()):], ".") {
			return t.Name()
		}
	}
	return ""
}

// Hint gives the script's error a hint; see the function [Hint].
func (s Script) Hint(ctx context.Context, on *session.Session, out Outcome) {
	Hint(ctx, on, s.text, out.Err)
}
