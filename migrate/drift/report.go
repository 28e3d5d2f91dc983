package drift

import (
	"encoding/hex"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

// Report is the shards grouped by their structure.
type Report struct {
	Groups     []Group    // from the lowest version up; within one the largest first
	NotCreated shards.Set // their schemas do not exist
	Moving     shards.Set // their moves have stopped at the fence, so that no host serves them; they are not compared
}

// Drift reports whether there are shards at one version whose structures differ.
func (r Report) Drift() bool {
	return slices.ContainsFunc(r.Groups, func(g Group) bool { return !g.Main })
}

// Group is the shards at one version that have one structure.
type Group struct {
	Version     int32  // of schema_version; 0 for shards without one
	Main        bool   // it is the largest at its version; of equally large ones that with the lowest shard
	Fingerprint string // 64 hexadecimal digits
	Shards      shards.Set
	Hosts       []HostShards // where its shards live, in the order of the map

	// Example is a shard of the group, the one that Differences are of.
	Example shards.Number
	// Differences are in what the group differs from the main one: "+ …" for what only Example has, and "- …" for
	// what only the main group has. They are empty for the main group, and for those behind the first 20 that
	// differ, which are not looked into.
	Differences []string
}

// HostShards is the shards of a group on one host.
type HostShards struct {
	Host   string     `json:"host"`
	Shards shards.Set `json:"shards"`
}

// report puts the groups into words.
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
