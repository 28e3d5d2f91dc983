package move

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// emptyShard is what a shard counts for without rows, in bytes: so that empty shards are spread evenly, too.
const emptyShard = 1 << 20

// Sizes returns how large the shards of a map are, in bytes with their indexes, as the hosts' statistics have it: by the
// number of pages when a table was last vacuumed or analyzed.
func Sizes(ctx context.Context, m *shards.Map) (map[shards.Number]int64, error) {
	var mu sync.Mutex
	sizes := map[shards.Number]int64{}
	err := eachHost(ctx, m, func(host shards.Host, conn *pgx.Conn) error {
		const query = `
			SELECT n.nspname::text, sum(c.relpages::bigint * current_setting('block_size')::bigint)::bigint
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'i', 'm') AND n.nspname ~ $1 GROUP BY 1`
		rows, err := conn.Query(ctx, query, "^"+m.Config().SchemaPrefix+"[0-9]+$")
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		var schema string
		var size int64
		_, err = pgx.ForEachRow(rows, []any{&schema, &size}, func() error {
			if n, ok := m.NumberOf(schema); ok && m.Has(n) && m.Host(n).Name == host.Name {
				sizes[n] = size
			}
			return nil
		})
		return err
	})
	return sizes, err
}

// load is a host of a plan.
type load struct {
	host   string
	weight float64
	bytes  float64
	shards []shards.Number // the largest last
}

// share is how full the host is, for its weight.
func (l *load) share() float64 { return l.bytes / l.weight }

// loads returns the hosts of a map and what they hold.
func loads(m *shards.Map, sizes map[shards.Number]int64) []*load {
	var all []*load
	for _, h := range m.Hosts() {
		l := &load{host: h.Name, weight: float64(max(h.Weight, 1)), shards: m.NumbersOn(h.Name)}
		slices.SortStableFunc(l.shards, func(a, b shards.Number) int { return cmp.Compare(sizes[a], sizes[b]) })
		for _, n := range l.shards {
			l.bytes += float64(sizes[n] + emptyShard)
		}
		all = append(all, l)
	}
	return all
}

// Drain returns a new host for each shard of a host: the largest first, each to the host that is then the least full for
// its weight. There must be another host.
func Drain(m *shards.Map, from string, sizes map[shards.Number]int64) map[shards.Number]string {
	all := loads(m, sizes)
	i := slices.IndexFunc(all, func(l *load) bool { return l.host == from })
	drained := all[i]
	others := slices.Delete(all, i, i+1)
	targets := map[shards.Number]string{}
	for _, n := range slices.Backward(drained.shards) {
		bytes := float64(sizes[n] + emptyShard)
		to := slices.MinFunc(others, func(a, b *load) int { return cmp.Compare((a.bytes+bytes)/a.weight, (b.bytes+bytes)/b.weight) })
		to.bytes += bytes
		targets[n] = to.host
	}
	return targets
}

// Split returns host to for about half of the bytes of host from: the largest shards first, each to the half that has less so far.
func Split(m *shards.Map, from, to string, sizes map[shards.Number]int64) map[shards.Number]string {
	all := loads(m, sizes)
	split := all[slices.IndexFunc(all, func(l *load) bool { return l.host == from })]
	targets := map[shards.Number]string{}
	var stay, leave int64
	for _, n := range slices.Backward(split.shards) {
		if bytes := sizes[n] + emptyShard; leave < stay {
			leave += bytes
			targets[n] = to
		} else {
			stay += bytes
		}
	}
	return targets
}

// Rebalance returns new hosts for as few bytes of shards as it can find that even out the hosts by their weights: from the
// fullest to the least full, the largest shard that makes the difference between the two smaller, as long as there is one.
func Rebalance(m *shards.Map, sizes map[shards.Number]int64) map[shards.Number]string {
	all := loads(m, sizes)
	targets := map[shards.Number]string{}
	for {
		byShare := func(a, b *load) int { return cmp.Compare(a.share(), b.share()) }
		from, to := slices.MaxFunc(all, byShare), slices.MinFunc(all, byShare)
		// What evens out the two, if it were moved.
		fits := (from.bytes*to.weight - to.bytes*from.weight) / (from.weight + to.weight)
		best := -1
		for i, n := range from.shards {
			bytes := float64(sizes[n] + emptyShard)
			if _, moved := targets[n]; moved || bytes >= 2*fits { // it would be no better then
				continue
			}
			if best < 0 || math.Abs(fits-bytes) < math.Abs(fits-float64(sizes[from.shards[best]]+emptyShard)) {
				best = i
			}
		}
		if best < 0 {
			return targets
		}
		n := from.shards[best]
		bytes := float64(sizes[n] + emptyShard)
		from.bytes, to.bytes = from.bytes-bytes, to.bytes+bytes
		from.shards = slices.Delete(from.shards, best, best+1)
		targets[n] = to.host
	}
}
