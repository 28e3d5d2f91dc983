package move

import (
	"context"
	"strings"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// analyze has the target take a first look at the shard's tables: without statistics plans can be slow by far until an autovacuum, which
// comes within a minute and does it better. A table whose columns are named is left to it. An old schema that is brought up to date
// has statistics.
func (j *job) analyze(ctx context.Context) {
	if j.back != nil {
		return
	}
	if err := j.analyzeTables(ctx); err != nil && ctx.Err() == nil {
		j.event("note: no statistics of the tables on %s yet: %v", j.Target, err)
	}
}

// analyzeTables reads a tenth of the rows that ANALYZE reads, in a session of its own.
func (j *job) analyzeTables(ctx context.Context) error {
	conn, err := session.Open(ctx, j.dst)
	if err != nil {
		return err
	}
	defer session.Close(ctx, conn)
	const query = `
		SELECT format('%s (%s)', c.oid::regclass, string_agg(quote_ident(a.attname), ', ')) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p') GROUP BY c.oid`
	tables, err := session.Texts(ctx, conn, query, j.Schema)
	if err != nil || len(tables) == 0 {
		return err
	}
	return session.Run(ctx, conn, "SET default_statistics_target = 10; ANALYZE "+strings.Join(tables, ", "))
}
