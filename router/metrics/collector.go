package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router"
)

// collector reads what a router says of itself when Prometheus asks.
type collector struct {
	*Recorder
	router *router.Router
}

// Collector returns what Prometheus asks for the figures of a router, of which the recorder is a tracer. Of a process's
// routers, each has a recorder of its own; those of one cluster differ by labels that
// [prometheus.WrapRegistererWith] adds.
func (m *Recorder) Collector(r *router.Router) prometheus.Collector {
	return labelled(r, &collector{m, r})
}

// labelled adds the labels that all series of a router have.
func labelled(r *router.Router, c prometheus.Collector) prometheus.Collector {
	theMap := r.Map()
	return prometheus.WrapCollectorWith(prometheus.Labels{
		"cluster": theMap.Config().Cluster, "strategy": theMap.Strategy().By,
	}, c)
}

// queryTimeout limits what a collection that queries asks of the hosts.
const queryTimeout = 5 * time.Second

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("kiloshard_router_"+name, help, labels, nil)
}

// figure is one series of each host.
type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s *router.HostStats) float64
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var figures = []figure{
	{desc("calls_total", "Statements by themselves, batches, transactions.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Calls) }},
	{desc("resent_total", "Calls that were sent again: on another connection, or prepared again.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Resent) }},
	{desc("lost_total", "Calls whose answers were lost with a connection.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Lost) }},
	{desc("retries_total", "Transactions that were run again.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Retried) }},
	{desc("retries_exhausted_total", "Transactions that were run again and given up.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Exhausted) }},
	{desc("connections_max", "Connections that there may be.", "host"), gauge, func(s *router.HostStats) float64 { return float64(s.Max) }},
	{desc("waiting_calls", "Calls that wait for a connection.", "host"), gauge, func(s *router.HostStats) float64 { return float64(s.Waiting) }},
	{desc("pooler", "1 if there is a pooler before the server.", "host"), gauge, func(s *router.HostStats) float64 { return truth(s.Pooler) }},
	{desc("role_changes_total", "How often another address of the host became the primary.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.RoleChanges) }},
	{desc("down_seconds", "For how long the host has been down; 0 if it is not.", "host"), gauge, downFor},
}

var (
	connections = desc("connections", "Connections to the host.", "host", "state")
	batchSize   = desc("batch_size", "How many calls were sent together that waited for a connection.", "host")
	shardCount  = desc("shards", "Shards that the map puts on the host.", "host")
	breaker     = desc("breaker", "1 for the state that the host's breaker is in, 0 for the others.", "host", "state")
	primary     = desc("primary_info", "1, with the address that calls to the host go to.", "host", "address")

	mapVersion = desc("map_version", "Version of the map by which the router goes.")
	mapChanges = desc("map_changes_total", "How often the router went over to another map.")
	mapSince   = desc("map_changed_timestamp_seconds", "When the router went over to its map, in seconds since 1970.")
	mapStale   = desc("map_stale", "1 if there may be a newer map: the store does not answer, or the router has refused it.")
	mapError   = desc("map_stale_timestamp_seconds", "Since when that is so, in seconds since 1970.")

	directoryEntries = desc("directory_entries", "Entries of the directory that are kept.")
	directoryHits    = desc("directory_hits_total", "Entries that were kept when they were wanted.")
	directoryMisses  = desc("directory_misses_total", "Entries that were not kept when they were wanted.")
)

// states are those of a breaker.
var states = []router.Breaker{router.BreakerClosed, router.BreakerOpen, router.BreakerHalfOpen}

// sizeBuckets are the upper bounds of batch_size.
var sizeBuckets = []int{1, 2, 4, 8, 16, 32}

// Describe tells which series there may be.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	c.operations.Describe(to)
	c.waits.Describe(to)
	c.errors.Describe(to)
	c.fanoutTimes.Describe(to)
	c.incomplete.Describe(to)
	for _, f := range figures {
		to <- f.desc
	}
	for _, f := range readFigures {
		to <- f.desc
	}
	for _, f := range replicaFigures {
		to <- f.desc
	}
	for _, d := range []*prometheus.Desc{
		connections, batchSize, shardCount, breaker, primary, mapVersion, mapChanges, mapSince, mapStale, mapError,
		replicaUsable, replicaLag, directoryEntries, directoryHits, directoryMisses,
	} {
		to <- d
	}
}

// Collect reads the router's figures.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	theMap := c.router.Map()
	on := map[string]int{}
	for n := range theMap.All().All() {
		on[theMap.Host(n).Name]++
	}
	present := map[string]bool{}
	for _, s := range c.router.Stats() {
		present[s.Host] = true
		for _, f := range figures {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(&s), s.Host)
		}
		to <- prometheus.MustNewConstMetric(connections, gauge, float64(s.Idle), s.Host, "idle")
		to <- prometheus.MustNewConstMetric(connections, gauge, float64(s.Conns-s.Idle), s.Host, "busy")
		to <- prometheus.MustNewConstMetric(shardCount, gauge, float64(on[s.Host]), s.Host)
		to <- sizes(&s)
		for _, state := range states {
			to <- prometheus.MustNewConstMetric(breaker, gauge, truth(s.Breaker == state), s.Host, state.String())
		}
		if s.Primary != "" {
			to <- prometheus.MustNewConstMetric(primary, gauge, 1, s.Host, s.Primary)
		}
	}
	for _, s := range c.router.ReadStats() {
		reads(&s, to)
	}
	c.keep(present)
	c.operations.Collect(to)
	c.waits.Collect(to)
	c.errors.Collect(to)
	c.fanoutTimes.Collect(to)
	c.incomplete.Collect(to)

	state := c.router.MapState()
	to <- prometheus.MustNewConstMetric(mapVersion, gauge, float64(state.Version))
	to <- prometheus.MustNewConstMetric(mapChanges, counter, float64(state.Swaps))
	to <- prometheus.MustNewConstMetric(mapSince, gauge, float64(state.Since.UnixMilli())/1000)
	to <- prometheus.MustNewConstMetric(mapStale, gauge, truth(state.Err != nil))
	if state.Err != nil {
		to <- prometheus.MustNewConstMetric(mapError, gauge, float64(state.ErrAt.UnixMilli())/1000)
	}
	if d, ok := c.router.DirectoryStats(); ok {
		to <- prometheus.MustNewConstMetric(directoryEntries, gauge, float64(d.Entries))
		to <- prometheus.MustNewConstMetric(directoryHits, counter, float64(d.Hits))
		to <- prometheus.MustNewConstMetric(directoryMisses, counter, float64(d.Misses))
	}
}

// sizes makes a histogram of how many calls were sent together.
func sizes(s *router.HostStats) prometheus.Metric {
	var count uint64
	buckets := map[float64]uint64{}
	size := 0
	for _, bound := range sizeBuckets {
		for ; size < len(s.Sizes) && size <= bound; size++ {
			count += s.Sizes[size]
		}
		buckets[float64(bound)] = count
	}
	return prometheus.MustNewConstHistogram(batchSize, count, float64(s.Batched+s.Sizes[1]), buckets, s.Host)
}

func downFor(s *router.HostStats) float64 {
	if s.DownSince.IsZero() {
		return 0
	}
	return time.Since(s.DownSince).Seconds()
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
