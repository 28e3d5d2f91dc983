package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// addressStatus is one address of a host with several, or of a replica in the map.
type addressStatus struct {
	Address string `json:"address"`
	// primary, standby, old primary, down, or why a server that answers refuses; of a replica that was promoted: promoted
	Role          string `json:"role"`
	Timeline      uint32 `json:"timeline,omitempty"`       // of what a primary writes, or of a standby's data; 0 if the role may not see it
	OtherTimeline bool   `json:"other_timeline,omitempty"` // than the primary's: a standby that does not follow it
	OtherCluster  bool   `json:"other_cluster,omitempty"`
	Error         string `json:"error,omitempty"`
}

// standbyStatus is a standby that streams from a host.
type standbyStatus struct {
	Name       string  `json:"name"`
	State      string  `json:"state"`
	LagSeconds float64 `json:"lag_seconds"`
}

const (
	rolePrimary    = "primary"
	roleOldPrimary = "old primary" // another one was promoted since
	rolePromoted   = "promoted"    // of a replica: it takes writes
)

// addressesOf returns addresses. second is the role of a server that takes writes and is not the primary.
func addressesOf(found []provision.AddressStatus, second string) (all []addressStatus) {
	for _, a := range found {
		of := addressStatus{Address: a.Address, Role: second, Timeline: a.Timeline, OtherTimeline: a.OtherTimeline, OtherCluster: a.OtherCluster}
		switch {
		case a.Err != nil:
			of.Role, of.Error = cli.MissingHost(a.Err, "down"), a.Err.Error()
		case a.Primary:
			of.Role = rolePrimary
		case a.Recovery:
			of.Role = "standby"
		}
		all = append(all, of)
	}
	return all
}

// text is the role, and for people whether the server is another one's.
func (a addressStatus) text() string {
	switch {
	case a.OtherCluster:
		return a.Role + " of another cluster"
	case a.OtherTimeline:
		return fmt.Sprintf("%s of timeline %d", a.Role, a.Timeline)
	}
	return a.Role
}

func standbysOf(s *provision.HostStatus) (all []standbyStatus) {
	for _, standby := range s.Standbys {
		all = append(all, standbyStatus{standby.Name, standby.State, standby.Lag.Seconds()})
	}
	return all
}

func addressRows(hosts []hostStatus) [][]string {
	rows := [][]string{{"HOST", "~ADDRESS", "ROLE"}}
	for _, h := range hosts {
		for _, a := range slices.Concat(h.Addresses, h.MapReplicas) {
			rows = append(rows, []string{h.Host, a.Address, a.text()})
		}
	}
	return rows
}

func standbyRows(hosts []hostStatus) [][]string {
	rows := [][]string{{"HOST", "~STANDBY", "STATE", ">LAG"}}
	for _, h := range hosts {
		for _, s := range h.Standbys {
			state, lag := s.State, time.Duration(s.LagSeconds*float64(time.Second)).Round(time.Millisecond).String()
			if state == "" { // the role may not see it
				state, lag = "?", "?"
			}
			rows = append(rows, []string{h.Host, s.Name, state, lag})
		}
	}
	return rows
}

// tableOf prints a table below another one, unless it is empty.
func tableOf(a *cli.App, rows [][]string) {
	if len(rows) > 1 {
		a.Say("")
		a.Table(rows)
	}
}

// primaryOf returns the address of the primary of a host with several; empty if there is none.
func primaryOf(h *hostStatus) string {
	for _, a := range h.Addresses {
		if a.Role == rolePrimary {
			return a.Address
		}
	}
	return ""
}

// warnOfServers names two primaries of a host, and standbys that do not follow its primary.
func warnOfServers(a *cli.App, h *hostStatus) {
	for _, r := range h.Rivals {
		fmt.Fprintln(a.Stderr, r)
	}
	for _, s := range slices.Concat(h.Addresses, h.MapReplicas) {
		if s.OtherTimeline {
			fmt.Fprintf(a.Stderr, "standby %s of host %s is on timeline %d, another than the primary's: it gets no changes; expected pg_rewind, or a new standby\n", s.Address, h.Host, s.Timeline)
		}
	}
}
