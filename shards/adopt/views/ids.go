package views

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
)

// checkIDs returns a [shards.FieldError] unless the map's old_ids_below tells the IDs of old sequences from those of shards: next_id() makes
// none below, and no row has one from there on that names another shard than its own.
func checkIDs(ctx context.Context, tx pgx.Tx, m *shards.Map, p *adopt.Plan) error {
	const field = "old_ids_below"
	if !m.Layout().HasTime() {
		return &shards.FieldError{Field: "layout", Found: m.Layout().String(), Expected: "one with a time: without it, IDs of shard 0 are as small as those of the old sequences"}
	}
	var floor int64
	if err := tx.QueryRow(ctx, `select kiloshard.id_floor(clock_timestamp())`).Scan(&floor); err != nil {
		return err
	}
	below := int64(m.Config().OldIDsBelow)
	switch {
	case below == 0:
		return &shards.FieldError{Field: field, Found: "missing", Expected: fmt.Sprintf("old_ids_below: %d in the map, so that no old ID is taken for that of a shard: see kiloshard help adopt", floor)}
	case below > floor:
		return &shards.FieldError{Field: field, Found: fmt.Sprint(below), Expected: fmt.Sprintf("%d at most: shards make smaller IDs now", floor)}
	}
	for _, t := range p.Tables {
		table := p.Catalog().Table(t.Table)
		key := table.PrimaryKey()
		if !t.Is.Sharded() || len(key) != 1 || table.Column(key[0]).Type != "bigint" {
			continue
		}
		joins, owner := t.Way().Joins("t", "k")
		id, l := "t."+quote(key[0]), m.Layout()
		query := fmt.Sprintf("select min(%[1]s) from %[2]s t%[3]s where %[1]s >= %[4]d and (%[1]s >> %[5]d) & %[6]d <> %[7]s",
			id, table.From(), joins, below, l.Type+l.Sequence, l.MaxShards()-1, p.Strategy.Shard(owner, m.Len()))
		var wrong *int64
		if err := tx.QueryRow(ctx, query).Scan(&wrong); err != nil {
			return fmt.Errorf("%s: %w", t.Table, err)
		}
		if wrong != nil {
			return &shards.FieldError{Field: field, Found: fmt.Sprintf("%d, and %s has the ID %d, which names another shard than that of its row", below, t.Table, *wrong), Expected: "a larger one, or tables whose IDs are smaller"}
		}
	}
	return nil
}
