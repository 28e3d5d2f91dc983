package provision

import (
	"context"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/generators"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// CounterStatus reports the last numbers of a central generator: tickets, a sequence, or a row.
type CounterStatus struct {
	Name    string
	Kind    shards.GeneratorKind
	Servers []CounterServer // in the order of the generator's hosts
}

// CounterServer reports the last number of a counter on one host.
type CounterServer struct {
	Host string
	Last int64 // before the first number, a lower one
	Err  error // why the number is unknown
}

// Apart returns the difference between the largest and the smallest of the servers' last numbers. It is 0 if fewer than
// two servers answer.
func (c CounterStatus) Apart() int64 {
	var least, most int64
	answers := 0
	for _, s := range c.Servers {
		if s.Err != nil {
			continue
		}
		if answers == 0 || s.Last < least {
			least = s.Last
		}
		if answers == 0 || s.Last > most {
			most = s.Last
		}
		answers++
	}
	return most - least
}

// Counters returns the last numbers of the map's central generators, in the map's order. It asks all hosts at once. If
// a host does not answer by the end of ctx, its servers have an Err.
func Counters(ctx context.Context, m *shards.Map) []CounterStatus {
	last := make([]map[string]int64, len(m.Hosts()))
	errs := make([]error, len(m.Hosts()))
	var wg sync.WaitGroup
	all := generators.For(m)
	for i, host := range m.Hosts() {
		if wanted := all.OnHost(host.Name); len(wanted) > 0 {
			wg.Go(func() { last[i], errs[i] = countersOn(ctx, host, wanted) })
		}
	}
	wg.Wait()

	var statuses []CounterStatus
	for _, g := range m.Generators() {
		if g.InShards() {
			continue
		}
		for _, name := range g.Names {
			status := CounterStatus{Name: name, Kind: g.Kind}
			for _, on := range g.Hosts {
				for i, host := range m.Hosts() {
					if host.Name == on {
						status.Servers = append(status.Servers, CounterServer{Host: on, Last: last[i][name], Err: errs[i]})
					}
				}
			}
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// countersOn returns the last numbers by name.
func countersOn(ctx context.Context, host shards.Host, wanted []generators.Generator) (map[string]int64, error) {
	conn, err := session.Open(ctx, host)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	return generators.Last(ctx, conn, wanted)
}
