package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// WrapperFigure compares a shard's next_id(), which is PL/pgSQL, with the engine inlined in the statement itself, as a
// next_id() in SQL would be. Times are medians in microseconds: of one ID in a statement of 1,000 on an idle shard, and of a
// statement that makes one ID in another shard than the one before, including its round trip.
type WrapperFigure struct {
	ID           float64 `json:"id"`
	IDInLine     float64 `json:"id_in_line"`
	Change       float64 `json:"other_shard"`
	ChangeInLine float64 `json:"other_shard_in_line"`

	FunctionBytes int64 `json:"function_bytes"` // memory for functions that a session keeps per shard
	AllBytes      int64 `json:"all_bytes"`      // the same including the shard's sequence
}

// measureWrapper measures it on all 16 shards of the host.
func measureWrapper(ctx context.Context, host shards.Host) (WrapperFigure, error) {
	conns, err := server.Open(ctx, host, 1)
	if err != nil {
		return WrapperFigure{}, err
	}
	defer server.Close(conns)
	conn := conns[0]
	f, err := wrapperMemory(ctx, conn)
	if err != nil {
		return WrapperFigure{}, err
	}
	calls := []func(n int) string{
		func(n int) string { return fmt.Sprintf("shard_%05d.next_id()", n) },
		func(n int) string { return fmt.Sprintf("kiloshard.next_id(%d, 'shard_%05[1]d.next_id_seq')", n) },
	}
	burstTimes, changeTimes := make([][]float64, len(calls)), make([][]float64, len(calls))
	for round := range 5 * 16 {
		shard := round % 16
		for k := range calls {
			i := (k + round) % len(calls)
			began := time.Now()
			if _, err := conn.Exec(ctx, "SELECT "+calls[i](shard)); err != nil {
				return WrapperFigure{}, err
			}
			took := time.Since(began)
			burstTook, err := timedBurst(ctx, conn, "", func(string) error {
				_, err := conn.Exec(ctx, fmt.Sprintf("SELECT count(%s) FROM generate_series(1, %d)", calls[i](shard), burst))
				return err
			})
			if err != nil {
				return WrapperFigure{}, err
			}
			if round >= 16 { // each statement is prepared by then
				changeTimes[i] = append(changeTimes[i], took.Seconds()*1e6)
				burstTimes[i] = append(burstTimes[i], burstTook.Seconds()*1e6/burst)
			}
		}
	}
	f.ID, f.IDInLine = stats.Median(burstTimes[0]), stats.Median(burstTimes[1])
	f.Change, f.ChangeInLine = stats.Median(changeTimes[0]), stats.Median(changeTimes[1])
	return f, nil
}

// wrapperMemory calls next_id() of one shard after another in a new session.
func wrapperMemory(ctx context.Context, conn *pgx.Conn) (f WrapperFigure, err error) {
	memory := func() (functions, all int64, err error) {
		const query = `
			SELECT coalesce(sum(total_bytes) FILTER (WHERE name ~ '^(PL/pgSQL function|SPI Plan|CachedPlan)'), 0)::bigint,
				sum(total_bytes)::bigint
			FROM pg_backend_memory_contexts`
		err = conn.QueryRow(ctx, query, pgx.QueryExecModeSimpleProtocol).Scan(&functions, &all)
		return functions, all, err
	}
	const first, more = 7, 8 // by then the engine's own functions, which all shards share, are planned
	var functions, all int64
	for n := range first + 1 + more {
		if _, err := conn.PgConn().Exec(ctx, fmt.Sprintf("SELECT shard_%05d.next_id()", n)).ReadAll(); err != nil {
			return f, err
		}
		if n == first {
			if functions, all, err = memory(); err != nil {
				return f, err
			}
		}
	}
	functionsAfter, allAfter, err := memory()
	f.FunctionBytes, f.AllBytes = (functionsAfter-functions)/more, (allAfter-all)/more
	return f, err
}
