// Package leads finds sequences that lead the clock of their host by more than load alone can cause.
package leads

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Lead is a sequence that leads the clock.
type Lead struct {
	Schema   string
	Sequence string
	By       time.Duration
}

// Read returns the sequences of a host's shards that lead its clock, farthest first.
func Read(ctx context.Context, conn *pgx.Conn, m *shards.Map, host shards.Host) ([]Lead, error) {
	if !m.Layout().HasTime() {
		return nil, nil
	}
	var all []Lead
	for batch := range slices.Chunk(m.Schemas(m.NumbersOn(host.Name)), sql.LeadsBatch) {
		query, args := sql.Leads(mapsql.Params(m), batch)
		rows, _ := conn.Query(ctx, query, args...) // rows has the error
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

// Compare adds each lead as a difference.
func Compare(l *difference.List, leads []Lead) {
	for _, lead := range leads {
		l.Add(difference.Lead, lead.Schema, fmt.Sprintf("%s leads the clock by %s", lead.Sequence, lead.By.Round(time.Millisecond)),
			fmt.Sprintf("at most %s; the lead shrinks with time. After a failover during the lead: kiloshard id advance", sql.Lead))
	}
}
