package provision

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql/special"
)

// CounterStatus is how far a central generator has come: tickets, a sequence, or a row.
type CounterStatus struct {
	Name    string
	Kind    shards.GeneratorKind
	Servers []CounterServer // in the order of the generator's hosts
}

// CounterServer is how far a counter has come on one host.
type CounterServer struct {
	Host string
	Last int64 // the last number that was given; before the first a number below it
	Err  error // why it is not known
}

// Apart returns by how many numbers the servers that answer are apart: what is left of their last numbers when the
// smallest is taken from the largest. It is 0 while fewer than two answer.
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

// Counters asks all hosts at once how far the map's central generators have come, in the map's order. A host that does
// not answer by the end of ctx is an Err of its servers.
func Counters(ctx context.Context, m *shards.Map) []CounterStatus {
	last := make([]map[string]int64, len(m.Hosts()))
	errs := make([]error, len(m.Hosts()))
	var wg sync.WaitGroup
	for i, host := range m.Hosts() {
		if wanted := generatorsOn(m, host); len(wanted) > 0 {
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
func countersOn(ctx context.Context, host shards.Host, wanted []wantedGenerator) (map[string]int64, error) {
	conn, err := open(ctx, host)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	last := map[string]int64{}
	var batch pgx.Batch
	for _, w := range wanted {
		query := fmt.Sprintf(`SELECT coalesce(pg_sequence_last_value($1::text::regclass), %d)`, max(0, w.start-w.step))
		arg := w.Schema + "." + w.Sequence()
		if w.kind == shards.Row {
			batch.Queue(special.Refuse("kiloshard.counters"))
			query, arg = `SELECT value FROM kiloshard.counters WHERE name = $1`, w.Name
		}
		batch.Queue(query, arg).QueryRow(func(row pgx.Row) error {
			var value int64
			err := row.Scan(&value)
			last[w.Name] = value
			return err
		})
	}
	return last, conn.SendBatch(ctx, &batch).Close()
}
