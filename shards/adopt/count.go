package adopt

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// slots is how many shards the keys are counted for. Fewer shards, of a power of two, have the sums.
const slots = 8192

// count counts the rows of each table that has a route: by shard, without a key, and by each foreign key that leads to another key.
func (p *Plan) count(ctx context.Context, tx pgx.Tx, cfg Config) error {
	var counted []*TablePlan
	for _, t := range p.Tables {
		if t.Is.Sharded() {
			counted = append(counted, t)
		}
	}
	for i, t := range counted {
		if cfg.Progress != nil {
			cfg.Progress(t.Table.String(), i+1, len(counted))
		}
		err := apart(ctx, tx, func(tx pgx.Tx) error { return p.countTable(ctx, tx, t) })
		if ctx.Err() != nil || tx.Conn().IsClosed() {
			return err
		}
		t.failed = err
	}
	return nil
}

// countTable counts the rows of one table.
func (p *Plan) countTable(ctx context.Context, tx pgx.Tx, t *TablePlan) error {
	rows, err := tx.Query(ctx, p.countQuery(t))
	if err != nil {
		return err
	}
	t.shards = make([]int64, slots)
	crossed := make([]int64, len(t.Crossings))
	var slot *int32
	var all, null int64
	targets := []any{&slot, &all, &null}
	for i := range crossed {
		targets = append(targets, &crossed[i])
	}
	_, err = pgx.ForEachRow(rows, targets, func() error {
		t.Looked += all
		t.Null += null
		if slot == nil {
			t.Broken += all - null
		} else {
			t.shards[*slot] += all
		}
		for i := range crossed {
			t.Crossings[i].Rows += crossed[i]
		}
		return nil
	})
	return err
}

// countQuery returns the query for a table: one row for each shard of so many, and one for the rows without a key.
func (p *Plan) countQuery(t *TablePlan) string {
	joins, key := t.route.Joins("t", "k")
	null := key + " is null"
	if len(t.route.Links) > 0 {
		var parts []string
		for _, column := range t.route.Links[0].Columns {
			parts = append(parts, "t."+pgx.Identifier{column}.Sanitize()+" is null")
		}
		null = "(" + strings.Join(parts, " or ") + ")"
	}
	counts := ""
	for i, c := range t.Crossings {
		more, other := c.crossing.Route.Joins("t", fmt.Sprintf("c%d_", i+1))
		joins += more
		counts += fmt.Sprintf(", count(*) filter (where %s <> %s)", other, key)
	}
	sample := ""
	if p.Sample < 100 {
		sample = fmt.Sprintf(" tablesample system (%g)", p.Sample)
	}
	return fmt.Sprintf("select %s::int, count(*), count(*) filter (where %s)%s from %s t%s%s group by 1",
		p.Strategy.Shard(key, slots), null, counts, p.catalog.Table(t.Table).From(), sample, joins)
}
