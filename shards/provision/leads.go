package provision

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// Lead is a sequence that leads the clock of its host by more than load alone can cause: the clock has stepped back.
// Until the clock has caught up, an asynchronous failover that loses WAL can make IDs that were given before.
type Lead struct {
	Schema   string
	Sequence string
	By       time.Duration
}

// leads returns the sequences of the host's shards that lead its clock, farthest first.
func leads(ctx context.Context, conn *pgx.Conn, m *shards.Map, host shards.Host) ([]Lead, error) {
	if !m.Layout().HasTime() {
		return nil, nil
	}
	var all []Lead
	for batch := range slices.Chunk(m.Schemas(m.NumbersOn(host.Name)), sql.LeadsBatch) {
		query, args := sql.Leads(params(m), batch)
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		some, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Lead, err error) {
			var seconds float64
			err = row.Scan(&l.Schema, &l.Sequence, &seconds)
			l.By = time.Duration(seconds * float64(time.Second))
			return l, err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b Lead) int { return int(b.By - a.By) })
	return all, nil
}
