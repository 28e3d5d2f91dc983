package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router"
)

// readFigure is one series of each host that has replicas.
type readFigure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s *router.ReadStats) float64
}

var readFigures = []readFigure{
	{desc("reads_on_primary_total", "Reads that went to the primary, because no replica qualified.", "host"), counter, func(s *router.ReadStats) float64 { return float64(s.OnPrimary) }},
	{desc("hedged_reads_total", "Reads that were sent to a second server.", "host"), counter, func(s *router.ReadStats) float64 { return float64(s.Hedged) }},
	{desc("hedges_won_total", "Hedged reads that the second server answered first.", "host"), counter, func(s *router.ReadStats) float64 { return float64(s.HedgesWon) }},
	{desc("replicas_measured", "1 while the replicas are measured, which is while there are reads.", "host"), gauge, func(s *router.ReadStats) float64 { return truth(s.Measuring) }},
}

// replicaFigure is one series of each replica.
type replicaFigure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s *router.ReplicaStats) float64
}

var replicaFigures = []replicaFigure{
	{desc("replica_reads_total", "Reads that were sent to the replica.", "host", "replica"), counter, func(s *router.ReplicaStats) float64 { return float64(s.Reads) }},
	{desc("replica_failed_total", "Reads sent to the replica that another server had to answer.", "host", "replica"), counter, func(s *router.ReplicaStats) float64 { return float64(s.Failed) }},
	{desc("replica_connections", "Connections to the replica.", "host", "replica"), gauge, func(s *router.ReplicaStats) float64 { return float64(s.Conns) }},
}

var (
	replicaUsable = desc("replica_usable", "1 if readers with the default MaxLag may use the replica.", "host", "replica")
	replicaLag    = desc("replica_lag_seconds", "Upper limit of how old the data is that a read on the replica sees.", "host", "replica")
)

// reads sends the series of a host that has replicas. While the replicas are not measured, it leaves out what the last measurement
// said: a replica would seem to fall behind whenever there are no reads.
func reads(s *router.ReadStats, to chan<- prometheus.Metric) {
	for _, f := range readFigures {
		to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(s), s.Host)
	}
	for i := range s.Replicas {
		r, index := &s.Replicas[i], strconv.Itoa(i)
		for _, f := range replicaFigures {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(r), s.Host, index)
		}
		if !s.Measuring {
			continue
		}
		to <- prometheus.MustNewConstMetric(replicaUsable, gauge, truth(r.Used), s.Host, index)
		if r.Lag > 0 {
			to <- prometheus.MustNewConstMetric(replicaLag, gauge, r.Lag.Seconds(), s.Host, index)
		}
	}
}
