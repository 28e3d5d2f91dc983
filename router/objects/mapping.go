package objects

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// Mapping is a one-way relation between objects, such as board_has_pins. Its rows are on the shard of the object that they lead
// from, one for each pair, and are in the order of their sequence. It is safe for concurrent use.
type Mapping struct {
	r        *router.Router
	from, to shards.ObjectType
	table    string // as it stands in SQL
}

// Edge leads to an object.
type Edge struct {
	To       shards.ID
	Sequence int64
}

// OpenMapping returns the relation between two types of the map. The error is [ErrType].
func OpenMapping(r *router.Router, from, to string) (*Mapping, error) {
	a, err := typeOf(r, from)
	if err != nil {
		return nil, err
	}
	b, err := typeOf(r, to)
	if err != nil {
		return nil, err
	}
	return &Mapping{r, a, b, pgx.Identifier{mappingTable(from, to)}.Sanitize()}, nil
}

// ByTime is the sequence of a moment: microseconds since 1970, so that rows are in the order in which they came.
func ByTime(t time.Time) int64 { return t.UnixMicro() }

// Add adds a row, and returns it with false if the pair has one already, which then stays as it is. The sequence is [ByTime],
// or a number of the user's own order. Errors of this and the other methods are those of a [router.Shard], and [ErrType] and
// [shards.ErrNoShard] for IDs that are none of these types. Nothing checks that the objects are there.
func (m *Mapping) Add(ctx context.Context, from, to shards.ID, sequence int64) (row Edge, added bool, err error) {
	shard, err := m.shard(from, to)
	if err != nil {
		return Edge{}, false, err
	}
	// The update changes nothing. It locks the row and so returns what is there, where DO NOTHING returns no row.
	query := `insert into ` + m.table + ` as m (from_id, to_id, sequence) values ($1, $2, $3)
		on conflict (from_id, to_id) do update set sequence = m.sequence returning sequence, xmax = 0`
	row.To = to
	err = shard.QueryRow(ctx, query, from, to, sequence).Scan(&row.Sequence, &added)
	return row, added, err
}

// Remove removes the row of a pair, and returns whether there was one.
func (m *Mapping) Remove(ctx context.Context, from, to shards.ID) (removed bool, err error) {
	return m.exec(ctx, `delete from `+m.table+` where from_id = $1 and to_id = $2`, from, to)
}

// Move gives the row of a pair another sequence, and returns whether there is one.
func (m *Mapping) Move(ctx context.Context, from, to shards.ID, sequence int64) (moved bool, err error) {
	return m.exec(ctx, `update `+m.table+` set sequence = $3 where from_id = $1 and to_id = $2`, from, to, sequence)
}

// Arrange puts rows into the order of a list: their sequences become 1, 2 and so on, in one statement. Rows that are not in
// the list keep theirs, and pairs without a row get none. It returns how many rows it has changed.
func (m *Mapping) Arrange(ctx context.Context, from shards.ID, order []shards.ID) (int, error) {
	shard, err := m.shard(from, order...)
	if err != nil {
		return 0, err
	}
	query := `update ` + m.table + ` m set sequence = o.n from unnest($2::bigint[]) with ordinality o (id, n) where m.from_id = $1 and m.to_id = o.id`
	tag, err := shard.Exec(ctx, query, from, numbers(order))
	return int(tag.RowsAffected()), err
}

// Count returns how many rows lead from an object.
func (m *Mapping) Count(ctx context.Context, from shards.ID) (count int, err error) {
	shard, err := m.shard(from)
	if err != nil {
		return 0, err
	}
	return count, shard.QueryRow(ctx, `select count(*) from `+m.table+` where from_id = $1`, from).Scan(&count)
}

// Page says which rows to read.
type Page struct {
	After   *Edge // the last row of the page before; nil for the first page
	Limit   int   // at most so many; defaults to 50
	Falling bool  // the highest sequence first, which by time is the newest
}

// Page returns rows that lead from an object, in order. It begins behind a row, not at a count of rows: a row that is there all
// the time, and keeps its sequence, is on one page, whatever comes and goes meanwhile.
func (m *Mapping) Page(ctx context.Context, from shards.ID, page Page) ([]Edge, error) {
	shard, err := m.shard(from)
	if err != nil {
		return nil, err
	}
	after, order := Edge{0, math.MinInt64}, `> ($2, $3) order by sequence, to_id`
	if page.Falling {
		after, order = Edge{math.MaxInt64, math.MaxInt64}, `< ($2, $3) order by sequence desc, to_id desc`
	}
	if page.After != nil {
		after = *page.After
	}
	if page.Limit <= 0 {
		page.Limit = 50
	}
	query := `select to_id, sequence from ` + m.table + ` where from_id = $1 and (sequence, to_id) ` + order + ` limit $4`
	rows, err := shard.Query(ctx, query, from, after.Sequence, after.To, page.Limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Edge])
}

func (m *Mapping) exec(ctx context.Context, query string, from, to shards.ID, more ...any) (bool, error) {
	shard, err := m.shard(from, to)
	if err != nil {
		return false, err
	}
	tag, err := shard.Exec(ctx, query, append([]any{from, to}, more...)...)
	return tag.RowsAffected() > 0, err
}

// shard returns the shard of an object from which rows lead, after a look at the types of all IDs.
func (m *Mapping) shard(from shards.ID, to ...shards.ID) (router.Shard, error) {
	p, err := locate(m.r, m.from, from)
	if err != nil {
		return router.Shard{}, err
	}
	for _, id := range to {
		if _, err := locate(m.r, m.to, id); err != nil {
			return router.Shard{}, fmt.Errorf("to: %w", err)
		}
	}
	return p.Shard, nil
}

func numbers(ids []shards.ID) []int64 {
	all := make([]int64, len(ids))
	for i, id := range ids {
		all[i] = int64(id)
	}
	return all
}

// Join returns the objects to which rows lead from an object, and the rows, of which the last one is where the next page
// begins. It takes two steps: the rows from one shard, then the objects, each of their shards asked once. Objects that are
// deleted are left out, so that there may be fewer than rows. Errors are those of [Mapping.Page] and [Type.GetMany].
func Join[T any](ctx context.Context, m *Mapping, t *Type[T], from shards.ID, page Page) ([]Object[T], []Edge, error) {
	rows, err := m.Page(ctx, from, page)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]shards.ID, len(rows))
	for i, row := range rows {
		ids[i] = row.To
	}
	all, err := t.GetMany(ctx, ids)
	return all, rows, err
}
