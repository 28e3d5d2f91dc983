package ids

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/shards"
)

// measureMemory calls next_id() of one shard after another in a new session.
func measureMemory(ctx context.Context, host shards.Host) (f MemoryFigure, err error) {
	conn, err := server.Connect(ctx, host)
	if err != nil {
		return f, err
	}
	defer server.Close(conn)
	const first, more = 7, 8 // by then the engine's own functions, which all shards share, are planned
	var before MemoryFigure
	for n := range first + 1 + more {
		if _, err := conn.PgConn().Exec(ctx, fmt.Sprintf("SELECT shard_%05d.next_id()", n)).ReadAll(); err != nil {
			return f, err
		}
		if n == first {
			if before, err = sessionMemory(ctx, conn); err != nil {
				return f, err
			}
		}
	}
	after, err := sessionMemory(ctx, conn)
	return MemoryFigure{Functions: (after.Functions - before.Functions) / more, All: (after.All - before.All) / more}, err
}

// sessionMemory returns the memory of a session.
func sessionMemory(ctx context.Context, conn *pgx.Conn) (f MemoryFigure, err error) {
	const query = `
		SELECT coalesce(sum(total_bytes) FILTER (WHERE name ~ '^(PL/pgSQL function|SPI Plan|CachedPlan)'), 0)::bigint,
			sum(total_bytes)::bigint
		FROM pg_backend_memory_contexts`
	err = conn.QueryRow(ctx, query, pgx.QueryExecModeSimpleProtocol).Scan(&f.Functions, &f.All)
	return f, err
}
