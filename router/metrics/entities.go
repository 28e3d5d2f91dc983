package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
)

var (
	workWaiting = desc("entity_work_waiting", "Writes of entities whose index rows a cleaner has to write.")
	workLag     = desc("entity_work_lag_seconds", "For how long the oldest of them has been due; 0 if there is none.")
	workAhead   = desc("entity_work_ahead_seconds", "How far one of them is in the future: the clock of a host has stepped back.")
	workUnknown = desc("entity_work_unknown", "1 if a shard does not say.")
)

// progress are the series of what a store has done.
var progress = []struct {
	desc  *prometheus.Desc
	value func(entities.Stats) int64
}{
	{desc("entities_repaired_total", "Entities whose index rows a cleaner has repaired."), func(s entities.Stats) int64 { return s.Repaired }},
	{desc("entities_filled_total", "Entities that were read to fill an index."), func(s entities.Stats) int64 { return s.Filled }},
	{desc("entities_compared_total", "Entities that a cleaner has compared with their index rows."), func(s entities.Stats) int64 { return s.Walked }},
	{desc("entity_index_rows_checked_total", "Index rows that were compared with their entities."), func(s entities.Stats) int64 { return s.Checked }},
	{desc("entity_index_rows_added_total", "Index rows that were added."), func(s entities.Stats) int64 { return s.Added }},
	{desc("entity_index_rows_removed_total", "Index rows that were removed."), func(s entities.Stats) int64 { return s.Removed }},
	{desc("entities_taken_total", "Entities without a row in a unique index, because another entity has it."), func(s entities.Stats) int64 { return s.Taken }},
}

// cleaner reads what a store of entities has done, and queries the shards for the work that is left.
type cleaner struct{ store *entities.Store }

// Cleaner returns a collector of the progress and the lag of the cleaner of entities. The progress is that of this store. For the
// lag it queries all shards, for up to 5 s. So register it in one program of a cluster: the one that cleans.
func Cleaner(r *router.Router, store *entities.Store) prometheus.Collector {
	return labelled(r, cleaner{store})
}

// Describe sends the descriptions of all series.
func (c cleaner) Describe(to chan<- *prometheus.Desc) {
	to <- workWaiting
	to <- workLag
	to <- workAhead
	to <- workUnknown
	for _, p := range progress {
		to <- p.desc
	}
}

// Collect queries all shards at once.
func (c cleaner) Collect(to chan<- prometheus.Metric) {
	stats := c.store.Stats()
	for _, p := range progress {
		to <- prometheus.MustNewConstMetric(p.desc, counter, float64(p.value(stats)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	lag, err := c.store.Lag(ctx)
	to <- prometheus.MustNewConstMetric(workUnknown, gauge, truth(err != nil))
	if err == nil {
		to <- prometheus.MustNewConstMetric(workWaiting, gauge, float64(lag.Waiting))
		to <- prometheus.MustNewConstMetric(workLag, gauge, lag.Oldest.Seconds())
		to <- prometheus.MustNewConstMetric(workAhead, gauge, lag.Ahead.Seconds())
	}
}
