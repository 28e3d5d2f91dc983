package health

import (
	"time"

	"github.com/kiloshard/kiloshard/router"
)

// Report says which hosts answer.
type Report struct {
	Ready         bool      `json:"ready"`
	Cluster       string    `json:"cluster"`
	MapVersion    int       `json:"map_version"`
	MapStale      bool      `json:"map_stale,omitempty"` // see router.MapState.Err
	MapStaleSince time.Time `json:"map_stale_since,omitzero"`
	Hosts         []Host    `json:"hosts"` // in the order of the map
}

// Host is the report on one host.
type Host struct {
	Host         string    `json:"host"`
	Up           bool      `json:"up"`
	Error        string    `json:"error,omitempty"` // a class of operation.Classify
	Milliseconds float64   `json:"milliseconds,omitempty"`
	Breaker      string    `json:"breaker,omitempty"`         // open or half-open; empty for closed
	DownSince    time.Time `json:"down_since,omitzero"`       // while the breaker is open
	Primary      string    `json:"primary,omitempty"`         // its address; with Config.Addresses only
	RoleChanges  uint64    `json:"role_changes,omitempty"`    // how many times another address became the primary
	Rivals       int       `json:"rival_primaries,omitempty"` // other addresses that take writes as well
	Connections  int       `json:"connections"`
	Idle         int       `json:"idle"`
	Waiting      int       `json:"waiting"` // calls that wait for a connection
	ShardCount   int       `json:"shard_count"`
	Replicas     []Replica `json:"replicas,omitempty"` // in the order of the map; none while there are no reads from them
}

// Replica is the report on a replica, for readers with the default MaxLag.
type Replica struct {
	Usable       bool    `json:"usable"`
	Milliseconds float64 `json:"lag_milliseconds,omitempty"` // upper limit of how old the data is that a read sees; 0 if unknown
}

// replicasOf returns the reports on replicas, if they are measured.
func replicasOf(s *router.ReadStats) []Replica {
	if !s.Measuring {
		return nil
	}
	all := make([]Replica, len(s.Replicas))
	for i, r := range s.Replicas {
		all[i] = Replica{Usable: r.Used, Milliseconds: float64(r.Lag.Microseconds()) / 1000}
	}
	return all
}
