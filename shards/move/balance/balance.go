// Package balance plans which shards move to which host, so that hosts carry alike for their weights: it reads nothing but a map and figures
// of its shards. The load of a shard is its part of all bytes and its part of all writes, each of which counts half; without writes it is
// its part of the bytes.
package balance

import (
	"cmp"
	"math"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

const (
	// emptyShard is what a shard counts for beside its rows, in bytes: so that empty shards are spread evenly, too.
	emptyShard = 1 << 20

	// nearlyEven is how far apart hosts may be that count as even, in parts of what each carries when they are: rates of writes differ
	// by more from one measurement to the next.
	nearlyEven = 0.02

	// worthwhile is the least part of a shard's load that has to make two hosts more alike. Of a shard with more load than they differ by
	// the rest makes them differ the other way round.
	worthwhile = 0.1

	// rounding is by how much sums of the same loads may differ.
	rounding = 1 + 1e-9
)

// balance is what a plan knows of hosts and shards.
type balance struct {
	hosts []*hostLoad
	bytes []float64 // of each shard
	load  []float64 // of each shard, all together 1
	near  float64   // how far apart hosts may be that are left alone: sizes are exact, and rates of writes are not
}

// hostLoad is a host of a plan.
type hostLoad struct {
	host   string
	weight float64
	load   float64
	shards []shards.Number // that it has had all along, the one with the largest load last
}

// share is how much the host carries for its weight.
func (h *hostLoad) share() float64 { return h.load / h.weight }

func newBalance(m *shards.Map, sizes map[shards.Number]int64, writes map[shards.Number]float64) *balance {
	b := &balance{bytes: make([]float64, m.Len()), load: make([]float64, m.Len())}
	var allBytes, allWrites float64
	for n := range m.All().All() {
		b.bytes[n] = float64(sizes[n] + emptyShard)
		allBytes += b.bytes[n]
		allWrites += writes[n]
	}
	for n := range m.All().All() {
		b.load[n] = b.bytes[n] / allBytes
		if allWrites > 0 {
			b.load[n] = (b.load[n] + writes[n]/allWrites) / 2
			b.near = nearlyEven
		}
	}
	for _, host := range m.Hosts() {
		h := &hostLoad{host: host.Name, weight: float64(max(host.Weight, 1)), shards: m.NumbersOn(host.Name)}
		slices.SortStableFunc(h.shards, func(x, y shards.Number) int { return cmp.Compare(b.load[x], b.load[y]) })
		for _, n := range h.shards {
			h.load += b.load[n]
		}
		b.hosts = append(b.hosts, h)
	}
	return b
}

// without returns a host, and the others.
func (b *balance) without(host string) (*hostLoad, []*hostLoad) {
	i := slices.IndexFunc(b.hosts, func(h *hostLoad) bool { return h.host == host })
	return b.hosts[i], slices.Concat(b.hosts[:i], b.hosts[i+1:])
}

// Drain returns a new host for each shard of a host: the one with the largest load first, each to the host that then carries the
// least for its weight. Without writes, rows a second, sizes alone count. There must be another host.
func Drain(m *shards.Map, from string, sizes map[shards.Number]int64, writes map[shards.Number]float64) map[shards.Number]string {
	b := newBalance(m, sizes, writes)
	drained, others := b.without(from)
	targets := map[shards.Number]string{}
	for _, n := range slices.Backward(drained.shards) {
		to := slices.MinFunc(others, func(x, y *hostLoad) int { return cmp.Compare((x.load+b.load[n])/x.weight, (y.load+b.load[n])/y.weight) })
		to.load += b.load[n]
		targets[n] = to.host
	}
	return targets
}

// Split returns host to for about half of the load of host from: the shards with the largest load first, each to the half that has less so
// far. The half with more bytes stays. Without writes, rows a second, sizes alone count.
func Split(m *shards.Map, from, to string, sizes map[shards.Number]int64, writes map[shards.Number]float64) map[shards.Number]string {
	b := newBalance(m, sizes, writes)
	split, _ := b.without(from)
	type half struct {
		load, bytes float64
		shards      []shards.Number
	}
	stay, leave := &half{}, &half{}
	for _, n := range slices.Backward(split.shards) {
		h := stay
		if leave.load < stay.load {
			h = leave
		}
		h.load, h.bytes, h.shards = h.load+b.load[n], h.bytes+b.bytes[n], append(h.shards, n)
	}
	if leave.bytes > stay.bytes {
		leave = stay
	}
	targets := map[shards.Number]string{}
	for _, n := range leave.shards {
		targets[n] = to
	}
	return targets
}

// Rebalance returns new hosts for as few bytes of shards as it can find that even out the hosts by their weights. From the host that carries
// the most to the one that carries the least goes a shard that makes them more alike, as long as there is one. It plans this in several ways,
// from the shard that makes them most alike to the one that does most for its bytes. Of the plans that even out the hosts about as well as
// the best one it returns the one with the fewest bytes. Without writes, rows a second, sizes alone count; with them, hosts that are as even as
// rates can tell are left alone.
func Rebalance(m *shards.Map, sizes map[shards.Number]int64, writes map[shards.Number]float64) map[shards.Number]string {
	type plan struct {
		targets      map[shards.Number]string
		apart, bytes float64
	}
	var plans []plan
	least := math.Inf(1)
	for _, asCheap := range []float64{0, 0.5, 1} {
		b := newBalance(m, sizes, writes)
		p := plan{targets: b.evenOut(asCheap)}
		p.apart = b.apart()
		for n := range p.targets {
			p.bytes += b.bytes[n]
		}
		plans, least = append(plans, p), min(least, p.apart)
	}
	plans = slices.DeleteFunc(plans, func(p plan) bool { return p.apart > least+nearlyEven })
	return slices.MinFunc(plans, func(x, y plan) int { return cmp.Compare(x.bytes, y.bytes) }).targets
}

// apart returns how far apart the hosts are, in parts of what each carries when they are even. It sorts them by that.
func (b *balance) apart() float64 {
	slices.SortStableFunc(b.hosts, func(x, y *hostLoad) int { return cmp.Compare(x.share(), y.share()) })
	var weights float64
	for _, h := range b.hosts {
		weights += h.weight
	}
	return (b.hosts[len(b.hosts)-1].share() - b.hosts[0].share()) * weights
}

// evenOut moves shards between the hosts, each once at most, and returns their new hosts. See best for asCheap.
func (b *balance) evenOut(asCheap float64) map[shards.Number]string {
	targets := map[shards.Number]string{}
	for b.apart() > b.near {
		to, from := b.hosts[0], b.hosts[len(b.hosts)-1]
		i := b.best(asCheap)
		if i < 0 {
			break
		}
		n := from.shards[i]
		from.shards = slices.Delete(from.shards, i, i+1)
		from.load, to.load = from.load-b.load[n], to.load+b.load[n]
		targets[n] = to.host
	}
	return targets
}

// best returns which shard of the last host makes it and the first one most alike, out of those that do so for few bytes: that bring at least
// asCheap times as much for a byte as the cheapest does. It returns -1 if there is none.
func (b *balance) best(asCheap float64) int {
	to, from := b.hosts[0], b.hosts[len(b.hosts)-1]
	apart := from.share() - to.share()
	fits := apart / (1/from.weight + 1/to.weight) // what evens out the two
	brings := make([]float64, len(from.shards))
	cheapest := 0.0
	for i, n := range from.shards {
		load := b.load[n]
		if 2*fits-load >= worthwhile*load && b.spread(load) <= apart*rounding {
			brings[i] = min(load, 2*fits-load)
			cheapest = max(cheapest, brings[i]/b.bytes[n])
		}
	}
	best := -1
	for i, n := range from.shards {
		if brings[i] > 0 && brings[i]/b.bytes[n] >= asCheap*cheapest && (best < 0 || brings[i] > brings[best]) {
			best = i
		}
	}
	return best
}

// spread returns how far the hosts are apart once a load has gone from the last to the first.
func (b *balance) spread(load float64) float64 {
	first, last := b.hosts[0], b.hosts[len(b.hosts)-1]
	a, z := (first.load+load)/first.weight, (last.load-load)/last.weight
	least, most := min(a, z), max(a, z)
	if others := b.hosts[1:max(len(b.hosts)-1, 1)]; len(others) > 0 {
		least, most = min(least, others[0].share()), max(most, others[len(others)-1].share())
	}
	return most - least
}
