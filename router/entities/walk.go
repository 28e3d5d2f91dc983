package entities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// walk compares all entities with their index rows, and all index rows with their entities, a few at a time. It finds what no row
// of entity_work names: rows that a host lost in a failover or that were deleted by hand, and rows of a writer that was suspended
// until after its work was done. It goes through each shard from the newest change back, and then begins again. After a
// failover of a host, which is a new timeline of Postgres, it begins again with the newest change.
type walk struct {
	s       *Store
	p       *pace
	next    shards.Number
	turns   map[shards.Number]int // what is next in a shard: 0 for the entities, or an index
	changes map[shards.Number]change
	rows    map[place][]any // values of the last row that was compared

	timelines map[string]string // by host
}

// change is a position in the changes of a shard, ordered by time.
type change struct {
	updated time.Time
	addedID int64
}

func newWalk(s *Store, p *pace) *walk {
	return &walk{s: s, p: p, turns: map[shards.Number]int{}, changes: map[shards.Number]change{}, rows: map[place][]any{}, timelines: map[string]string{}}
}

// step compares as many entities and rows as the rate allows in one interval.
func (w *walk) step(ctx context.Context) error {
	if len(w.s.indexes) == 0 {
		return nil
	}
	limit := int(float64(w.p.WalkPerSecond) * w.p.Interval.Seconds())
	if w.p.WalkPerSecond > 0 {
		limit = max(limit, 1)
	}
	var taken error // reported, and no reason to leave the other shards
	for visited := 0; limit > 0 && visited < w.s.d.Shards*(len(w.s.indexes)+1); visited++ {
		n := w.next
		w.next = (n + 1) % shards.Number(w.s.d.Shards)
		count, err := w.visit(ctx, n, limit)
		if err != nil {
			taken = errors.Join(taken, fmt.Errorf("shard %d: %w", n, err))
			if !errors.Is(err, ErrTaken) {
				return taken
			}
		}
		limit -= max(count, 1)
	}
	return taken
}

// restart makes the walk begin again, in all shards, if the host of a shard has failed over: rows of the other shards may belong to
// the entities that it lost.
func (w *walk) restart(ctx context.Context, shard router.Shard) error {
	const query = `select left(pg_walfile_name(pg_current_wal_lsn()), 8)`
	host, timeline := shard.Host().Name, ""
	if err := shard.QueryRow(ctx, query).Scan(&timeline); err != nil {
		return err
	}
	if before, known := w.timelines[host]; known && before != timeline {
		clear(w.turns)
		clear(w.changes)
		clear(w.rows)
	}
	w.timelines[host] = timeline
	return nil
}

// visit compares some entities of a shard, or some rows of one of its indexes, and returns how many.
func (w *walk) visit(ctx context.Context, n shards.Number, limit int) (int, error) {
	shard, err := w.s.r.ForShard(n)
	if err == nil {
		_, err = w.s.compareShard(ctx, shard)
	}
	if err == nil {
		err = w.restart(ctx, shard)
	}
	if err != nil {
		return 0, err
	}
	turn := w.turns[n]
	w.turns[n] = (turn + 1) % (len(w.s.indexes) + 1)
	if turn == 0 {
		return w.entities(ctx, shard, limit)
	}
	at := place{turn - 1, n}
	x := Index{s: w.s, at: at.index, table: w.s.indexes[at.index]}
	last, count, err := x.checkSome(ctx, shard, w.rows[at], limit)
	w.rows[at] = last
	return count, err
}

// entities compares some entities of a shard with their index rows.
func (w *walk) entities(ctx context.Context, shard router.Shard, limit int) (int, error) {
	query := `select id, version, ` + w.s.project("body") + `::text, updated, added_id from entities
		where (updated, added_id) < (coalesce($1::timestamptz, 'infinity'), $2::bigint) order by updated desc, added_id desc limit $3`
	at, begun := w.changes[shard.Number()]
	var from *time.Time
	if begun {
		from = &at.updated
	}
	found, err := shard.Query(ctx, query, from, at.addedID, limit)
	if err != nil {
		return 0, err
	}
	var (
		all     []row
		count   int
		id      ID
		version int64
		text    []byte
	)
	if _, err = pgx.ForEachRow(found, []any{&id, &version, &text, &at.updated, &at.addedID}, func() error {
		count++
		d, err := projected(text)
		some, _ := w.s.rowsOf(id, d, version)
		all = append(all, some.without(nil)...)
		return err
	}); err != nil {
		return count, err
	}
	w.changes[shard.Number()] = at
	if count < limit {
		delete(w.changes, shard.Number())
	}
	w.s.counts.walked.Add(int64(count))
	if len(all) == 0 {
		return count, nil
	}
	if err := w.s.step("walk"); err != nil {
		return count, err
	}
	before := w.s.counts.added.Load()
	taken, err := w.s.add(ctx, all)
	if err == nil && w.s.counts.added.Load() > before {
		// A writer may have changed an entity and removed its old rows since it was read.
		err = w.s.each(ctx, all, w.s.removeStrays)
	}
	w.s.counts.taken.Add(int64(len(taken)))
	for _, r := range taken {
		err = errors.Join(err, fmt.Errorf("%s, entity %x: %w", w.s.d.Indexes[r.index].Name, r.id, ErrTaken))
	}
	return count, err
}
