package provision

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
)

// LostError reports shards that are on no host although a ledger of migrations knows them: they were dropped, or their
// host was restored to an earlier state. Creating them again would hide that.
type LostError struct {
	Map    *shards.Map
	Shards shards.Set
}

// Error names the first of the shards and its host, and how to create it again.
func (e *LostError) Error() string {
	first := e.Shards.Ranges()[0].First
	text := fmt.Sprintf("shard %d (%s) is missing on %s, and the ledger says that it ran migrations",
		first, e.Map.Schema(first), e.Map.Host(first).Name)
	if more := e.Shards.Len() - 1; more > 0 {
		text += fmt.Sprintf("; and %d more (%s)", more, e.Shards)
	}
	return text + "; expected it to be restored: kiloshard create --empty " + e.Shards.String() + " makes it again, with no rows"
}

// checkLost returns a [LostError] if shards are lost that the caller does not want to create empty.
func (op *operation) checkLost(ctx context.Context, m *shards.Map, empty shards.Set) error {
	lost, err := findLost(ctx, op.sessions, m, op.hosts)
	if err != nil {
		return err
	}
	var refused []shards.Number
	for n := range lost.All() {
		if !empty.Has(n) {
			refused = append(refused, n)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &LostError{Map: m, Shards: shards.SetOf(refused...)}
}

// findLost returns the shards that are on no host although the ledger of one has a current entry of theirs.
func findLost(ctx context.Context, s *hosts.Sessions, m *shards.Map, all []*inventory.Host) (shards.Set, error) {
	missing := onNoHost(m, all)
	if len(missing) == 0 {
		return shards.Set{}, nil
	}
	known := make([]shards.Set, len(all))
	err := s.Each(func(i int, conn *pgx.Conn) error {
		if !all[i].Helper.Ledger {
			return nil
		}
		const query = `SELECT n FROM unnest($1::int[]) n WHERE EXISTS (SELECT FROM kiloshard.ledger l WHERE l.shard = n AND l.current)`
		rows, _ := conn.Query(ctx, query, missing) // rows has the error
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[shards.Number])
		known[i] = shards.SetOf(numbers...)
		return err
	})
	var lost shards.Set
	for _, set := range known {
		lost = lost.Union(set)
	}
	return lost, err
}

// onNoHost returns the shards of the map that no host has, and whose move has not stopped at the fence.
func onNoHost(m *shards.Map, all []*inventory.Host) []shards.Number {
	var missing []shards.Number
	for n := range m.All().All() {
		found := false
		for _, h := range all {
			_, has := h.Shards[m.Schema(n)]
			_, stopped := h.Stopped[m.Schema(n)]
			found = found || has || stopped
		}
		if !found {
			missing = append(missing, n)
		}
	}
	return missing
}
