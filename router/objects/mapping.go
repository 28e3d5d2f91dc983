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

// Mapping is a one-way relation between objects, such as board_has_pins. It has at most one row for two objects, on the shard of
// the object that the row leads from. Rows have a sequence, which orders them. A Mapping is safe for concurrent use.
type Mapping struct {
	r        *router.Router
	from, to shards.ObjectType
	table    string // its name in SQL
	in       transaction
}

// Edge is a row of a mapping, as seen from the object that it leads from.
type Edge struct {
	To       shards.ID
	Sequence int64
}

// OpenMapping returns a mapping of [Tables.Mappings]. It returns [ErrType] if the map lacks one of its types.
func OpenMapping(r *router.Router, of Relation) (*Mapping, error) {
	a, err := typeOf(r, of.From)
	if err != nil {
		return nil, err
	}
	b, err := typeOf(r, of.To)
	if err != nil {
		return nil, err
	}
	return &Mapping{r: r, from: a, to: b, table: pgx.Identifier{of.table()}.Sanitize()}, nil
}

// ByTime returns a sequence for a time: microseconds since 1970. It puts rows in the order in which they were added.
func ByTime(t time.Time) int64 { return t.UnixMicro() }

// Add adds a row and returns it with true. If there is one for the two objects, Add changes nothing and returns that row with
// false. The sequence is [ByTime], or a number in an order of your own. Add does not check that the objects exist. This and the
// other methods return [ErrType] or [shards.ErrNoShard] for IDs of other types, and otherwise the errors of a [router.Shard].
func (m *Mapping) Add(ctx context.Context, from, to shards.ID, sequence int64) (row Edge, added bool, err error) {
	shard, err := m.shard(from, to)
	if err != nil {
		return Edge{}, false, err
	}
	// The update changes nothing, but it locks and returns the present row. DO NOTHING would return no row.
	query := `insert into ` + m.table + ` as m (from_id, to_id, sequence) values ($1, $2, $3)
		on conflict (from_id, to_id) do update set sequence = m.sequence returning sequence, xmax = 0`
	row.To = to
	err = shard.QueryRow(ctx, query, from, to, sequence).Scan(&row.Sequence, &added)
	return row, added, err
}

// Remove removes the row of two objects, and reports whether there was one.
func (m *Mapping) Remove(ctx context.Context, from, to shards.ID) (removed bool, err error) {
	return m.exec(ctx, `delete from `+m.table+` where from_id = $1 and to_id = $2`, from, to)
}

// Move changes the sequence of the row of two objects, and reports whether there is one.
func (m *Mapping) Move(ctx context.Context, from, to shards.ID, sequence int64) (moved bool, err error) {
	return m.exec(ctx, `update `+m.table+` set sequence = $3 where from_id = $1 and to_id = $2`, from, to, sequence)
}

// Arrange puts rows in the order of a list: it changes their sequences to 1, 2 and so on, in one statement. Other rows keep
// their sequences. It adds no rows. It returns the number of rows that it has updated. Of two calls for one object, one waits for the
// other.
func (m *Mapping) Arrange(ctx context.Context, from shards.ID, order []shards.ID) (int, error) {
	shard, err := m.shard(from, order...)
	if err != nil {
		return 0, err
	}
	// Locked in one order: each list has its own, and two of them would wait for each other.
	query := `with l as materialized (select to_id from ` + m.table + ` where from_id = $1 and to_id = any ($2::bigint[]) order by to_id for update)
update ` + m.table + ` m set sequence = o.n from l, unnest($2::bigint[]) with ordinality o (id, n) where m.from_id = $1 and m.to_id = l.to_id and l.to_id = o.id`
	tag, err := shard.Exec(ctx, query, from, numbers(order))
	return int(tag.RowsAffected()), err
}

// Count returns the number of rows that lead from an object.
func (m *Mapping) Count(ctx context.Context, from shards.ID) (count int, err error) {
	shard, err := m.shard(from)
	if err != nil {
		return 0, err
	}
	return count, shard.QueryRow(ctx, `select count(*) from `+m.table+` where from_id = $1`, from).Scan(&count)
}

// Page says which rows to read.
type Page struct {
	After   *Edge // the last row of the previous page; nil for the first page
	Limit   int   // largest number of rows; defaults to 50
	Falling bool  // the highest sequence first: with ByTime, the newest row
}

// Page returns rows that lead from an object, in order. A page begins after a row, not at an offset. So a row that keeps its
// sequence is on exactly one page, while others are added or removed.
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

// shard checks the types of all IDs and returns where statements for the shard of the object that the rows lead from are sent.
func (m *Mapping) shard(from shards.ID, to ...shards.ID) (sender, error) {
	p, err := locate(m.r, m.from, from)
	if err != nil {
		return nil, err
	}
	for _, id := range to {
		if _, err := locate(m.r, m.to, id); err != nil {
			return nil, fmt.Errorf("to: %w", err)
		}
	}
	return m.in.on(p.Shard)
}

func numbers(ids []shards.ID) []int64 {
	all := make([]int64, len(ids))
	for i, id := range ids {
		all[i] = int64(id)
	}
	return all
}

// Join returns a page of rows that lead from an object, and the objects that they lead to. The next page begins after the last
// row. Join reads the rows from one shard, and then the objects, with one query per shard. It leaves out objects that are
// deleted, so it may return fewer objects than rows. It returns the errors of [Mapping.Page] and [Type.GetMany].
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
