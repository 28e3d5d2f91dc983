package provision

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// LostError says that shards are on no host although a ledger of migrations knows them: they were dropped, or their host
// was restored to an earlier state. Making them again would hide that.
type LostError struct {
	Map    *shards.Map
	Shards shards.Set
}

// Error names the first of the shards and its host, and what was expected.
func (e *LostError) Error() string {
	first := e.Shards.Ranges()[0].First
	text := fmt.Sprintf("shard %d (%s) is missing on %s, and the ledger says that it ran migrations", first, e.Map.Schema(first), e.Map.Host(first).Name)
	if more := e.Shards.Len() - 1; more > 0 {
		text += fmt.Sprintf("; and %d more (%s)", more, e.Shards)
	}
	return text + "; expected it to be restored: kiloshard create --empty " + e.Shards.String() + " makes it again, with no rows"
}

// lost returns the shards that are on no host although the ledger of one has a current entry of theirs.
func (s *sessions) lost(ctx context.Context, m *shards.Map, inventories []*inventory) (shards.Set, error) {
	var gone []shards.Number
	for n := range m.All().All() {
		there := false
		for _, inv := range inventories {
			_, found := inv.found[m.Schema(n)]
			_, fenced := inv.fenced[m.Schema(n)]
			there = there || found || fenced
		}
		if !there {
			gone = append(gone, n)
		}
	}
	known := make([][]shards.Number, len(inventories))
	err := s.each(func(i int, conn *pgx.Conn) error {
		if len(gone) == 0 || !inventories[i].ledger {
			return nil
		}
		const query = `SELECT n FROM unnest($1::int[]) n WHERE EXISTS (SELECT FROM kiloshard.ledger l WHERE l.shard = n AND l.current)`
		rows, err := conn.Query(ctx, query, gone)
		if err != nil {
			return err
		}
		known[i], err = pgx.CollectRows(rows, pgx.RowTo[shards.Number])
		return err
	})
	var all []shards.Number
	for _, numbers := range known {
		all = append(all, numbers...)
	}
	return shards.SetOf(all...), err
}

// refuseLost returns a [LostError] when shards are lost that are not to be made again.
func (s *sessions) refuseLost(ctx context.Context, m *shards.Map, inventories []*inventory, empty shards.Set) error {
	lost, err := s.lost(ctx, m, inventories)
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
