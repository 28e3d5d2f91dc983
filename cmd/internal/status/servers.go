package status

import (
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// addressStatus is one address of a host with several.
type addressStatus struct {
	Address string `json:"address"`
	Role    string `json:"role"` // primary, standby, old primary, down, or why a server that answers refuses
	Error   string `json:"error,omitempty"`
}

// standbyStatus is a standby that streams from a host.
type standbyStatus struct {
	Name       string  `json:"name"`
	State      string  `json:"state"`
	LagSeconds float64 `json:"lag_seconds"`
}

const rolePrimary = "primary"

func addressesOf(s *provision.HostStatus) (all []addressStatus) {
	for _, a := range s.Addresses {
		of := addressStatus{Address: a.Address, Role: "old primary"} // another one was promoted since
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

func standbysOf(s *provision.HostStatus) (all []standbyStatus) {
	for _, standby := range s.Standbys {
		all = append(all, standbyStatus{standby.Name, standby.State, standby.Lag.Seconds()})
	}
	return all
}

func addressRows(hosts []hostStatus) [][]string {
	rows := [][]string{{"HOST", "~ADDRESS", "ROLE"}}
	for _, h := range hosts {
		for _, a := range h.Addresses {
			rows = append(rows, []string{h.Host, a.Address, a.Role})
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
