package metrics

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

var (
	leading      = desc("sequences_leading", "Sequences that lead the clock by more than a second: it has stepped back.", "host")
	largestLead  = desc("sequence_lead_seconds", "By how much the sequence that is farthest ahead leads the clock.", "host", "sequence")
	leadsUnknown = desc("sequences_unknown", "1 if the host does not say which of its sequences lead the clock.", "host")
)

// leads queries the hosts of a router's map for sequences that lead their clocks.
type leads struct{ router *router.Router }

// Leads returns a collector of the sequences that lead the clock of their host. Unlike [Recorder.Collector] it queries each primary,
// by way of one shard, for up to 5 s. So register it in one service of a cluster. The service's role needs USAGE on the sequences.
// A layout without time has no such series.
func Leads(r *router.Router) prometheus.Collector {
	return labelled(r, leads{r})
}

// Describe sends the descriptions of all series.
func (l leads) Describe(to chan<- *prometheus.Desc) {
	to <- leading
	to <- largestLead
	to <- leadsUnknown
}

// Collect queries all hosts at once.
func (l leads) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	theMap := l.router.Map()
	if !theMap.Layout().HasTime() {
		return
	}
	var wg sync.WaitGroup
	for _, host := range theMap.Hosts() {
		numbers := theMap.NumbersOn(host.Name)
		if len(numbers) == 0 {
			continue
		}
		wg.Go(func() {
			found, err := l.on(ctx, theMap, numbers)
			to <- prometheus.MustNewConstMetric(leadsUnknown, gauge, truth(err != nil), host.Name)
			if err != nil {
				return
			}
			to <- prometheus.MustNewConstMetric(leading, gauge, float64(len(found)), host.Name)
			if len(found) > 0 {
				farthest := slices.MaxFunc(found, func(a, b lead) int { return int(a.seconds - b.seconds) })
				to <- prometheus.MustNewConstMetric(largestLead, gauge, farthest.seconds, host.Name, farthest.sequence)
			}
		})
	}
	wg.Wait()
}

type lead struct {
	sequence string
	seconds  float64
}

// on queries the host of the given shards, by way of the first of them.
func (l leads) on(ctx context.Context, m *shards.Map, numbers []shards.Number) ([]lead, error) {
	shard, err := l.router.ForShard(numbers[0])
	if err != nil {
		return nil, err
	}
	layout := m.Layout()
	p := sql.Params{Epoch: m.Epoch(), TimeBits: layout.TimeBits(), SequenceBits: layout.Sequence}
	var found []lead
	for batch := range slices.Chunk(numbers, sql.LeadsBatch) {
		query, args := sql.Leads(p, m.Schemas(batch))
		rows, err := shard.Query(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var schema, sequence string
			var seconds float64
			if err := rows.Scan(&schema, &sequence, &seconds); err != nil {
				rows.Close()
				return nil, err
			}
			found = append(found, lead{schema + "." + sequence, seconds})
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return found, nil
}
