package rows

import (
	"context"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// Analyze makes first statistics of the tables of a schema, from a tenth of the rows that ANALYZE usually reads, in its own
// session. It names the columns, so that autovacuum still analyzes the tables.
func Analyze(ctx context.Context, host shards.Host, schema string) error {
	conn, err := session.Open(ctx, host)
	if err != nil {
		return err
	}
	defer session.Close(ctx, conn)
	const query = `
		SELECT format('%s (%s)', c.oid::regclass, string_agg(quote_ident(a.attname), ', ')) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p') GROUP BY c.oid`
	tables, err := session.Texts(ctx, conn, query, schema)
	if err != nil || len(tables) == 0 {
		return err
	}
	return session.Run(ctx, conn, "SET default_statistics_target = 10; ANALYZE "+strings.Join(tables, ", "))
}
