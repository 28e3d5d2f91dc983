package drift

import (
	"encoding/hex"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

// Report is the shards grouped by their structure.
type Report struct {
	Groups     []Group    `json:"groups"`      // from the lowest version up; within a version the largest first
	NotCreated shards.Set `json:"not_created"` // their schemas do not exist
	Moving     shards.Set `json:"moving"`      // not compared: their moves stopped at the fence, so no host serves them
}

// Drift reports whether shards of the same version have different structures.
func (r Report) Drift() bool {
	return slices.ContainsFunc(r.Groups, func(g Group) bool { return !g.Main })
}

// Group is the shards of one version with the same structure.
type Group struct {
	Version     int32        `json:"version"`     // of schema_version; 0 for shards without one
	Main        bool         `json:"main"`        // the largest group of its version; of equally large ones that with the lowest shard
	Fingerprint string       `json:"fingerprint"` // 64 hexadecimal digits
	Shards      shards.Set   `json:"shards"`
	Hosts       []HostShards `json:"hosts"` // where its shards live, in the order of the map

	// Example is a shard of the group, the one that Differences are of.
	Example shards.Number `json:"example"`
	// Differences are the differences from the main group: "+ …" for lines that only Example has, and "- …" for lines that
	// only the main group has. They are empty for the main group, and for all other groups after the first 20.
	Differences []string `json:"differences"`
}

// HostShards is the shards of a group on one host.
type HostShards struct {
	Host   string     `json:"host"`
	Shards shards.Set `json:"shards"`
}

// report returns the groups with their hosts and differences.
func (l *look) report(groups []*group) []Group {
	var all []Group
	var main *group
	told := 0
	for _, g := range groups {
		one := Group{Version: g.version, Main: main == nil || main.version != g.version, Fingerprint: hex.EncodeToString(g.sum[:]), Shards: shards.SetOf(g.shards...), Example: g.example}
		if one.Main {
			main = g
		} else if told < maxDifferences && l.lines[main.example] != nil && l.lines[g.example] != nil {
			told++
			one.Differences = Differences(main.structure(l).Of(g.example), l.lines[g.example])
		}
		for _, host := range l.cfg.Map.Hosts() {
			var on []shards.Number
			for _, n := range g.shards {
				if l.cfg.Map.Host(n).Name == host.Name {
					on = append(on, n)
				}
			}
			if len(on) > 0 {
				one.Hosts = append(one.Hosts, HostShards{Host: host.Name, Shards: shards.SetOf(on...)})
			}
		}
		all = append(all, one)
	}
	return all
}
