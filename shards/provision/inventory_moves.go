package provision

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// fencesQuery names the schemas that stand in the place of shards that have moved away, or are about to: $1 is the pattern of
// their names, $2 the view that marks them. A shard has its sequence, whatever others may have made beside it.
const fencesQuery = `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = $2 AND c.relkind = 'v' AND n.nspname ~ $1
	AND NOT EXISTS (SELECT FROM pg_class s WHERE s.relnamespace = n.oid AND s.relname = 'next_id_seq')`

// takeMoves leaves out the schemas that are no shards although they are named like one: the fences of shards that have moved
// away, and what a move under way has made of a shard so far. It notes the shards that the map has here and whose move has
// stopped at the fence.
func (inv *inventory) takeMoves(ctx context.Context, conn *pgx.Conn, m *shards.Map, pattern string) error {
	rows, err := conn.Query(ctx, fencesQuery, pattern, sql.FenceMark)
	if err != nil {
		return err
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var ledger bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('kiloshard.moves') IS NOT NULL`).Scan(&ledger); err != nil {
		return err
	}
	inv.fenced = map[string]string{}
	if ledger && inv.usable() {
		rows, err := conn.Query(ctx, `SELECT schema::text, side = 'target', target, fenced, `+sql.MoverAtWork+` FROM kiloshard.moves m WHERE outcome IS NULL AND (side = 'target' OR fenced IS NOT NULL)`)
		if err != nil {
			return err
		}
		var schema, target string
		var arrives, working bool
		var since *time.Time
		_, err = pgx.ForEachRow(rows, []any{&schema, &arrives, &target, &since, &working}, func() error {
			n, ok := m.NumberOf(schema)
			atHome := ok && m.Has(n) && m.Host(n).Name == inv.host.Name
			switch {
			case arrives && !atHome:
				left = append(left, schema)
			case arrives && slices.Contains(left, schema):
				inv.fenced[schema] = "not opened yet since it has come here: nobody serves it"
			case arrives: // the map was changed already: what is here serves
			case !arrives && atHome && working:
				inv.fenced[schema] = "" // for a moment
			case !arrives && atHome:
				inv.fenced[schema] = fmt.Sprintf("fenced since %s, on its way to %s: nobody serves it", since.UTC().Format(time.DateTime), target)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, schema := range left {
		delete(inv.found, schema)
		delete(inv.schemas, schema)
	}
	return nil
}
