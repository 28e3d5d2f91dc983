package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/cmd/internal/migrations"
	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// kindStructure is a difference among the shards themselves, of which the map says nothing.
const kindStructure provision.Kind = "structure"

// verifyDifference is a difference, of one schema or of several shards that differ in the same way.
type verifyDifference struct {
	provision.Difference
	Shards *shards.Set `json:"shards,omitempty"`
}

// structureDifferences compares the structures of some shards: one difference for each group that is unlike the others at its
// version. The error joins those of hosts that do not answer; the differences are the other hosts'.
func structureDifferences(ctx context.Context, m *shards.Map, of shards.Set) ([]verifyDifference, error) {
	report, err := drift.Look(ctx, drift.Config{Map: m, Shards: of})
	var partial *shards.PartialError
	if err != nil && !errors.As(err, &partial) {
		return nil, err
	}
	var differences []verifyDifference
	for i, g := range report.Groups {
		if g.Main {
			continue
		}
		hosts := make([]string, len(g.Hosts))
		for i, h := range g.Hosts {
			hosts[i] = h.Host
		}
		main := migrations.MainOf(report, i)
		schema := m.Schema(g.Example)
		if more := g.Shards.Len() - 1; more > 0 {
			schema += fmt.Sprintf(" and %d more", more)
		}
		differences = append(differences, verifyDifference{
			Difference: provision.Difference{
				Kind: kindStructure, Host: strings.Join(hosts, ", "), Schema: schema, Found: firstFew(g.Differences),
				Want: fmt.Sprintf("the structure of %s and %d more at version %d", m.Schema(main.Example), main.Shards.Len()-1, main.Version),
			},
			Shards: &g.Shards,
		})
	}
	if partial == nil {
		return differences, nil
	}
	for _, f := range partial.Failed {
		differences = append(differences, verifyDifference{Difference: provision.Difference{
			Kind: kindStructure, Host: f.Host, Schema: f.Schema, Found: "a schema_version that cannot be read", Want: "a table with one row and the column version",
		}})
	}
	return differences, errors.Join(partial.Causes...)
}

// firstFew returns the first of some lines on one line, and how many more there are.
func firstFew(lines []string) string {
	const few, most = 3, 120 // lines, and characters of each
	var texts []string
	for i, line := range lines {
		if i == few {
			texts = append(texts, fmt.Sprintf("and %d more; see kiloshard migrate drift", len(lines)-few))
			break
		}
		if runes := []rune(line); len(runes) > most {
			line = string(runes[:most]) + "…"
		}
		texts = append(texts, line)
	}
	if len(texts) == 0 {
		return "another structure; see kiloshard migrate drift"
	}
	return strings.Join(texts, "; ")
}
