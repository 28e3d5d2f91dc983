package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router"
)

// collector reads the figures of a router when Prometheus collects them.
type collector struct {
	*Recorder
	router *router.Router
}

// Collector returns a collector of the figures of a router. The recorder must be one of its tracers. Each router of a process
// needs its own recorder. If two routers have the same cluster, add labels with [prometheus.WrapRegistererWith].
func (m *Recorder) Collector(r *router.Router) prometheus.Collector {
	return labelled(r, &collector{m, r})
}

// labelled adds the label of all series of a router.
func labelled(r *router.Router, c prometheus.Collector) prometheus.Collector {
	return prometheus.WrapCollectorWith(prometheus.Labels{"cluster": r.Map().Config().Cluster}, c)
}

// queryTimeout is the time limit of the queries of a collection.
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
	{desc("calls_total", "Single statements, batches and transactions.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Calls) }},
	{desc("entered_total", "Groups, and statements and batches by themselves, that were sent behind an entry.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Entered) }},
	{desc("kept_total", "Those that were sent without an entry, because the session had kept the shard's path.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Kept) }},
	{desc("resent_total", "Calls that were sent again: on another connection, or after their statement was prepared again.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Resent) }},
	{desc("lost_total", "Calls whose answers were lost with a connection.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Lost) }},
	{desc("retries_total", "Transactions that were run again.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Retried) }},
	{desc("retries_exhausted_total", "Transactions that were run again until router.Retry gave up.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.Exhausted) }},
	{desc("connections_max", "Limit of open connections.", "host"), gauge, func(s *router.HostStats) float64 { return float64(s.Max) }},
	{desc("waiting_calls", "Calls that wait for a connection.", "host"), gauge, func(s *router.HostStats) float64 { return float64(s.Waiting) }},
	{desc("pooler", "1 if a pooler is between the router and the server.", "host"), gauge, func(s *router.HostStats) float64 { return truth(s.Pooler) }},
	{desc("role_changes_total", "How often another address of the host became the primary.", "host"), counter, func(s *router.HostStats) float64 { return float64(s.RoleChanges) }},
	{desc("rival_primaries", "Other addresses of the host that take writes as well; 0 unless the host has several primaries.", "host"), gauge, func(s *router.HostStats) float64 { return float64(s.Rivals) }},
	{desc("down_seconds", "How long the host has been down; 0 if it is up.", "host"), gauge, downFor},
}

var (
	connections = desc("connections", "Connections to the host.", "host", "state")
	batchSize   = desc("batch_size", "How many calls were sent together after a wait for a connection.", "host")
	shardCount  = desc("shards", "Shards that the map puts on the host.", "host")
	breaker     = desc("breaker", "1 for the state that the host's breaker is in, 0 for the others.", "host", "state")
	primary     = desc("primary_info", "1, with the address to which calls to the host go.", "host", "address")

	mapVersion = desc("map_version", "Version of the map that the router uses.")
	mapChanges = desc("map_changes_total", "How many times the router has changed its map.")
	mapSince   = desc("map_changed_timestamp_seconds", "When the router changed its map last, in seconds since 1970.")
	mapStale   = desc("map_stale", "1 if the map may be out of date: the store does not answer, or the router has refused a newer map.")
	mapError   = desc("map_stale_timestamp_seconds", "Since when the map may be out of date, in seconds since 1970.")

	directoryEntries = desc("directory_entries", "Entries of the directory in the cache.")
	directoryHits    = desc("directory_hits_total", "Lookups that found the entry in the cache.")
	directoryMisses  = desc("directory_misses_total", "Lookups that did not find the entry in the cache.")
)

// states are the states of a breaker.
var states = []router.Breaker{router.BreakerClosed, router.BreakerOpen, router.BreakerHalfOpen}

// sizeBuckets are the upper bounds of batch_size.
var sizeBuckets = []int{1, 2, 4, 8, 16, 32}

// Describe sends the descriptions of all series.
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

// sizes returns the histogram of how many calls were sent together.
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
