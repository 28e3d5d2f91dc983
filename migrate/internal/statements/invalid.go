package statements

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/script"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
)

// dropInvalid drops the invalid indexes that an earlier, failed attempt of a statement has left. Call it in the session
// that runs the statement.
func (r Run) dropInvalid(ctx context.Context, s *session.Session, change onIndex) error {
	if change.kind == "" {
		return nil
	}
	results, err := s.Conn.Exec(ctx, change.placeQuery()).ReadAll()
	if err != nil {
		return err
	}
	for _, row := range results[0].Rows {
		if schema := string(row[0]); schema != r.Shape.Schema {
			return &script.LeftError{Objects: "an index of " + string(row[1]), Schema: schema}
		}
	}
	results, err = s.Conn.Exec(ctx, change.invalidQuery()).ReadAll()
	if err != nil {
		return err
	}
	for _, row := range results[0].Rows {
		oid, index, table := string(row[0]), string(row[1]), string(row[2])
		if err := dropIfInvalid(ctx, s, oid, index, table); err != nil {
			return fmt.Errorf("the invalid index %s, left by a statement that failed: %w", index, err)
		}
		r.Logger.Info("dropped an invalid index, left by a statement that failed",
			slog.String("host", s.Host.Name), slog.Int("shard", int(r.Shape.Shard)), slog.String("index", index))
	}
	return nil
}

// dropIfInvalid drops an index if it is still invalid once nobody builds an index on its table: an index is invalid while
// it is being built too, and the session that builds one concurrently holds the lock that this takes. It polls for the lock,
// since a waiting statement would hold a snapshot.
func dropIfInvalid(ctx context.Context, s *session.Session, oid, index, table string) error {
	query := fmt.Sprintf(`begin isolation level read committed; lock table only %s in share update exclusive mode nowait;
		select not indisvalid from pg_catalog.pg_index where indexrelid = %s; commit`, table, oid)
	for pause := session.FirstPause; ; pause = min(2*pause, session.LongestPause) {
		results, err := s.Conn.Exec(ctx, query).ReadAll()
		if err == nil {
			if rows := results[2].Rows; len(rows) > 0 && string(rows[0][0]) == "t" {
				_, err = s.Conn.Exec(ctx, "drop index concurrently if exists "+index).ReadAll()
			}
			return err
		}
		if session.WaitedInVain(err) {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if _, undone := s.Conn.Exec(ctx, "rollback").ReadAll(); undone != nil || !session.WaitedInVain(err) {
			return err
		}
	}
}

// placeQuery returns a query for the schema of what the statement builds indexes on, and for its name. Such a statement
// commits by itself, so nothing can be refused after it.
func (c onIndex) placeQuery() string {
	name := sqltext.Quote(pgx.Identifier(c.on).Sanitize())
	if c.kind == "SCHEMA" {
		return fmt.Sprintf("select %s, 'schema ' || %s", sqltext.Quote(c.on[len(c.on)-1]), name)
	}
	return fmt.Sprintf("select relnamespace::pg_catalog.regnamespace, oid::pg_catalog.regclass from pg_catalog.pg_class where oid = pg_catalog.to_regclass(%s)", name)
}

// invalidQuery returns a query for the OID, the name and the table of each such index. The manual documents the names of
// indexes that REINDEX leaves; those that CREATE INDEX chooses end in _idx and perhaps a number.
func (c onIndex) invalidQuery() string {
	on := fmt.Sprintf("pg_catalog.to_regclass(%s)", sqltext.Quote(pgx.Identifier(c.on).Sanitize()))
	const byReindex = ` and c.relname ~ '_cc(new|old)[0-9]*$'`
	var which string
	switch {
	case c.kind == "CREATE" && c.index == "":
		which = fmt.Sprintf("i.indrelid = %s and c.relname ~ '_idx[0-9]*$'", on)
	case c.kind == "CREATE":
		which = fmt.Sprintf("c.relname = %s::pg_catalog.name and c.relnamespace = (select relnamespace from pg_catalog.pg_class where oid = %s)",
			sqltext.Quote(c.index), on)
	case c.kind == "INDEX":
		which = fmt.Sprintf("i.indrelid = (select indrelid from pg_catalog.pg_index where indexrelid = %s)", on) + byReindex
	case c.kind == "TABLE":
		which = fmt.Sprintf("i.indrelid = %s", on) + byReindex
	default:
		which = fmt.Sprintf("s.nspname = %s::pg_catalog.name", sqltext.Quote(c.on[0])) + byReindex
	}
	return `
		select i.indexrelid, pg_catalog.format('%I.%I', s.nspname, c.relname), pg_catalog.format('%I.%I', s.nspname, t.relname)
		from pg_catalog.pg_index i
		join pg_catalog.pg_class c on c.oid = i.indexrelid and c.relkind = 'i'
		join pg_catalog.pg_class t on t.oid = i.indrelid
		join pg_catalog.pg_namespace s on s.oid = c.relnamespace
		where not i.indisvalid and ` + which + ` order by 1`
}
