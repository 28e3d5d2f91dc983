package adopt

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
)

// firstID is the ID of the first row of the comparison, above those of the old sequences and below those of shards.
const firstID = 1 << 39

// A turn has fewer calls than [Config.Calls] if the first turns show that it would take longer than longestTurn.
const (
	leastCalls  = 3
	longestTurn = 2 * time.Second
)

// The stages in which statements are compared.
const (
	stageView     = "view"
	stageForward  = "forward mirror"
	stageBackward = "backward mirror"
)

// side is one database of the comparison: the adopted one by the path of a shard, or the plain copy.
type side struct {
	conn *pgx.Conn
	user int64
}

// compareStatements measures statements on a shard, and the same ones on the old tables of the plain copy, in turn. No client may be at work.
func (b *bench) compareStatements(ctx context.Context, stage string, n shards.Number) error {
	b.cfg.Progress("statements, " + stage)
	user := int64(n)
	if user == 0 {
		user = int64(b.m.Len())
	}
	var sides [2]side
	for i, host := range []shards.Host{b.host, b.plain} {
		conn, err := server.Connect(ctx, host)
		if err != nil {
			return err
		}
		defer server.Close(conn)
		path := "public"
		if i == 0 {
			path = b.m.SearchPath(n)
		}
		if _, err := conn.Exec(ctx, "set search_path = "+path); err != nil {
			return err
		}
		sides[i] = side{conn, user}
		if err := sides[i].tree(ctx); err != nil {
			return fmt.Errorf("%s: %w", stage, err)
		}
	}
	for _, t := range []int{0, len(chain) - 1} {
		if err := b.compareTable(ctx, stage, t, sides); err != nil {
			return fmt.Errorf("%s: %s: %w", stage, chain[t].name, err)
		}
	}
	for _, s := range sides {
		if _, err := s.conn.Exec(ctx, `delete from albums where id = $1`, int64(firstID)); err != nil {
			return err
		}
	}
	return nil
}

// tree makes a row in each table of the chain.
func (s side) tree(ctx context.Context) error {
	parent := s.user
	for i, t := range chain {
		id := int64(firstID + i)
		query := fmt.Sprintf(`insert into %s (id, %s, %s) values ($1, $2, 'compared')`, t.name, t.parent, t.text)
		if _, err := s.conn.Exec(ctx, query, id, parent); err != nil {
			return err
		}
		parent = id
	}
	return nil
}

func (b *bench) compareTable(ctx context.Context, stage string, at int, sides [2]side) error {
	t, parent := chain[at], sides[0].user
	if at > 0 {
		parent = firstID + int64(at) - 1
	}
	kinds := []struct {
		what, query string
		args        func(id int64) []any
	}{
		{"insert", fmt.Sprintf(`insert into %s (id, %s, %s) values ($1, $2, 'compared')`, t.name, t.parent, t.text), func(id int64) []any { return []any{id, parent} }},
		{"update", fmt.Sprintf(`update %s set %s = 'compared again' where id = $1`, t.name, t.text), func(id int64) []any { return []any{id} }},
		{"select", fmt.Sprintf(`select %s, %s from %s where id = $1`, t.parent, t.text, t.name), func(id int64) []any { return []any{id} }},
		{"delete", fmt.Sprintf(`delete from %s where id = $1`, t.name), func(id int64) []any { return []any{id} }},
	}
	took := make([][2][]float64, len(kinds))
	calls, slowest := min(b.cfg.Calls, leastCalls), time.Nanosecond
	err := harness.Turns(b.cfg.Rounds+1, len(sides), func(round, side int) error {
		turn := time.Now()
		for k, kind := range kinds {
			began := time.Now()
			for i := range calls {
				tag, err := sides[side].conn.Exec(ctx, kind.query, kind.args(int64(firstID+1000+i))...)
				if err == nil && tag.RowsAffected() != 1 {
					err = fmt.Errorf("%d rows, expected 1", tag.RowsAffected())
				}
				if err != nil {
					return fmt.Errorf("%s: %w", kind.what, err)
				}
			}
			if round > 0 { // the first one warms up statements and plans
				took[k][side] = append(took[k][side], float64(time.Since(began).Nanoseconds())/1000/float64(calls))
			}
		}
		each := time.Since(turn) / time.Duration(calls)
		if slowest = max(slowest, each); round == 0 && side == len(sides)-1 {
			calls = max(calls, min(b.cfg.Calls, int(longestTurn/slowest)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, kind := range kinds {
		ours, plain := took[k][0], took[k][1]
		more := make([]float64, len(ours))
		for i := range ours {
			more[i] = ours[i] - plain[i]
		}
		b.report.Statements = append(b.report.Statements, Statement{
			Stage: stage, Table: t.name, What: kind.what, Ours: stats.Median(ours), Plain: stats.Median(plain),
			Ratio: stats.MedianRatio(ours, plain), More: stats.Median(more),
		})
	}
	return nil
}
