package extensions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// Create creates the extensions of the map that a host does not have, each in one transaction.
func (in Installed) Create(ctx context.Context, conn *pgx.Conn, m *shards.Map) error {
	for _, e := range in.Missing(m) {
		err := session.Run(ctx, conn, createScript(e))
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "42501" {
			return fmt.Errorf("extension %s: %w: run this there once, as a superuser or as the service's administrator, "+
				"and then this command again: CREATE EXTENSION %s SCHEMA %s",
				e.Name, err, identifier(e.Name), identifier(e.Schema))
		}
		if err != nil {
			return fmt.Errorf("extension %s: %w", e.Name, err)
		}
	}
	return nil
}

// Script returns the script that creates the extensions of the map that a host does not have.
func (in Installed) Script(m *shards.Map) string {
	var b strings.Builder
	for _, e := range in.Missing(m) {
		b.WriteString(createScript(e))
	}
	return b.String()
}

// createScript returns the script that creates an extension. Services may use its schema, as they may use public.
func createScript(e shards.Extension) string {
	script := ""
	if e.Schema != "pg_catalog" {
		script = fmt.Sprintf(`
DO $kiloshard$
BEGIN
  IF to_regnamespace(%[1]s) IS NULL THEN
    CREATE SCHEMA %[2]s;
    GRANT USAGE ON SCHEMA %[2]s TO PUBLIC;
  END IF;
END
$kiloshard$;
`, literal(quoted(e.Schema)), quoted(e.Schema))
	}
	script += fmt.Sprintf("CREATE EXTENSION IF NOT EXISTS %s SCHEMA %s", quoted(e.Name), quoted(e.Schema))
	if e.Version != "" {
		script += " VERSION " + quoted(e.Version)
	}
	return script + ";\n"
}

// quoted returns a name as a quoted identifier.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal returns a text as a string constant.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
