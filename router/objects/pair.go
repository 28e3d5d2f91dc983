package objects

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// Pair is a relation in both directions, such as board_has_pins and pin_has_boards. Its two rows are in two shards, and there is
// no transaction over both. The row in There counts. It is written first, and then the row in Back. If an error or the end of the
// process prevents the second write, Repair makes Back agree with There.
type Pair struct{ There, Back *Mapping }

// Add adds both rows, or the one that is missing. Both have the sequence of the row in There. See [Mapping.Add].
func (p Pair) Add(ctx context.Context, from, to shards.ID, sequence int64) (added bool, err error) {
	row, added, err := p.There.Add(ctx, from, to, sequence)
	if err != nil {
		return false, err
	}
	_, _, err = p.Back.Add(ctx, to, from, row.Sequence)
	return added, err
}

// Remove removes both rows, or the one that exists. See [Mapping.Remove].
func (p Pair) Remove(ctx context.Context, from, to shards.ID) (removed bool, err error) {
	if removed, err = p.There.Remove(ctx, from, to); err != nil {
		return false, err
	}
	_, err = p.Back.Remove(ctx, to, from)
	return removed, err
}

// Repair compares the rows of both directions in a set of shards. It adds rows that Back lacks and removes rows that only Back
// has, and returns how many. It may run while services write. For rows that are written at the same time, Back may still
// disagree afterwards; the next Repair corrects it. ctx governs all of it. It returns the error of [many.Each].
func (p Pair) Repair(ctx context.Context, r *router.Router, set shards.Set) (added, removed int, err error) {
	var more, fewer atomic.Int64
	err = many.Each(ctx, r, set, many.Options{}, func(ctx context.Context, s router.Shard) error {
		if err := p.There.walk(ctx, s, func(rows []edge) error {
			n, err := p.Back.addAll(ctx, rows)
			more.Add(n)
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", p.There.table, err)
		}
		if err := p.Back.walk(ctx, s, func(rows []edge) error {
			n, err := p.removeStray(ctx, s, rows)
			fewer.Add(n)
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", p.Back.table, err)
		}
		return nil
	})
	return int(more.Load()), int(fewer.Load()), err
}

// edge is a row with both of its objects.
type edge struct {
	From, To shards.ID
	Sequence int64
	Version  string // of the row; changes with each write
}

const repairRows = 500

// walk calls fn with all rows of a shard, in parts.
func (m *Mapping) walk(ctx context.Context, s router.Shard, fn func([]edge) error) error {
	query := `select from_id, to_id, sequence, xmin::text from ` + m.table + ` where (from_id, to_id) > ($1, $2) order by from_id, to_id limit $3`
	var last edge
	for {
		rows, err := s.Query(ctx, query, last.From, last.To, repairRows)
		if err != nil {
			return err
		}
		some, err := pgx.CollectRows(rows, pgx.RowToStructByPos[edge])
		if err != nil || len(some) == 0 {
			return err
		}
		if err := fn(some); err != nil {
			return err
		}
		last = some[len(some)-1]
	}
}

// columns are rows as arrays, for unnest.
type columns struct {
	from, to, sequence []int64
	version            []string
}

func (c *columns) add(e edge) {
	c.from, c.to = append(c.from, int64(e.From)), append(c.to, int64(e.To))
	c.sequence, c.version = append(c.sequence, e.Sequence), append(c.version, e.Version)
}

// turned returns the rows of the other direction, by their shards.
func turned(rows []edge) map[shards.Number]*columns {
	all := map[shards.Number]*columns{}
	for _, e := range rows {
		n := Layout.Parts(e.To).Shard
		if all[n] == nil {
			all[n] = &columns{}
		}
		all[n].add(edge{e.To, e.From, e.Sequence, e.Version})
	}
	return all
}

// addAll adds the rows of the other direction that are missing.
func (m *Mapping) addAll(ctx context.Context, rows []edge) (int64, error) {
	var added int64
	query := `insert into ` + m.table + ` (from_id, to_id, sequence) select * from unnest($1::bigint[], $2::bigint[], $3::bigint[]) on conflict do nothing`
	for n, c := range turned(rows) {
		s, err := m.r.ForShard(n)
		if err != nil {
			return added, err
		}
		tag, err := s.Exec(ctx, query, c.from, c.to, c.sequence)
		if err != nil {
			return added, err
		}
		added += tag.RowsAffected()
	}
	return added, nil
}

// removeStray removes the rows of Back, in shard s, that There does not have. Add writes There first, and then Back, even if Back
// has the row. So a row of Back whose version has not changed since before There was read was not added again meanwhile.
func (p Pair) removeStray(ctx context.Context, s router.Shard, rows []edge) (int64, error) {
	there := map[[2]shards.ID]bool{}
	for n, c := range turned(rows) {
		of, err := p.There.r.ForShard(n)
		if err != nil {
			return 0, err
		}
		query := `select m.from_id, m.to_id, 0, '' from ` + p.There.table + ` m join unnest($1::bigint[], $2::bigint[]) a (from_id, to_id) using (from_id, to_id)`
		got, err := of.Query(ctx, query, c.from, c.to)
		if err != nil {
			return 0, err
		}
		found, err := pgx.CollectRows(got, pgx.RowToStructByPos[edge])
		if err != nil {
			return 0, err
		}
		for _, e := range found {
			there[[2]shards.ID{e.To, e.From}] = true
		}
	}
	var stray columns
	for _, e := range rows {
		if !there[[2]shards.ID{e.From, e.To}] {
			stray.add(e)
		}
	}
	if len(stray.from) == 0 {
		return 0, nil
	}
	query := `delete from ` + p.Back.table + ` m using unnest($1::bigint[], $2::bigint[], $3::text[]) a (from_id, to_id, version)
		where m.from_id = a.from_id and m.to_id = a.to_id and m.xmin::text = a.version`
	tag, err := s.Exec(ctx, query, stray.from, stray.to, stray.version)
	return tag.RowsAffected(), err
}
