package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// printDifferences prints differences for people, those that are alike but for the name of their shard as one, and for
// scripts a row for each.
func printDifferences(a *cli.App, m *shards.Map, differences []verifyDifference) {
	if a.Output == cli.Plain {
		for _, d := range differences {
			fmt.Fprintln(a.Stdout, strings.Join([]string{d.Schema, d.Host, string(d.Kind), d.Found, d.Want}, "\t"))
		}
		return
	}
	for _, g := range alikeDifferences(m, differences) {
		a.Say("%s: %s on %s", g.Kind, g.schemas(), strings.Join(g.hosts, ", "))
		a.Say("%s", cli.Wrap(a.Width(), "  found     ", cli.OneLine(g.Found)))
		a.Say("%s", cli.Wrap(a.Width(), "  expected  ", cli.OneLine(g.Want)))
	}
}

// alike are differences that are the same but for the shard.
type alike struct {
	provision.Difference // the first of them
	count                int
	hosts                []string
}

func (g alike) schemas() string {
	if g.count == 1 {
		return g.Schema
	}
	return fmt.Sprintf("%s and %s more", g.Schema, cli.Thousands(g.count-1))
}

func alikeDifferences(m *shards.Map, differences []verifyDifference) []alike {
	var groups []alike
	at := map[[3]string]int{}
	for _, d := range differences {
		key := [3]string{string(d.Kind), cli.Impersonal(m, d.Schema, d.Found), cli.Impersonal(m, d.Schema, d.Want)}
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, alike{Difference: d.Difference})
		}
		groups[i].count++
		if !slices.Contains(groups[i].hosts, d.Host) {
			groups[i].hosts = append(groups[i].hosts, d.Host)
		}
	}
	return groups
}
