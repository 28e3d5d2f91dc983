package cli

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// ParseShards reads the flag --shards.
func ParseShards(m *shards.Map, narrowed string) (shards.Set, error) {
	return ParseSet(m, "--shards", narrowed)
}

// ParseSet reads a flag that names shards of the map.
func ParseSet(m *shards.Map, flag, text string) (shards.Set, error) {
	set, err := shards.ParseSet(text)
	if err != nil {
		return shards.Set{}, Usage(fmt.Errorf("%s: %w", flag, err))
	}
	for _, r := range set.Ranges() {
		if !m.Has(r.Last) {
			return shards.Set{}, Usagef("%s: shard %d, expected 0 to %d", flag, r.Last, m.Len()-1)
		}
	}
	return set, nil
}

// ShortSet returns the shards of a set for a column of a table: in one for people the first of them and how many more there
// are, where they are many.
func (a *App) ShortSet(set shards.Set) string {
	const most = 50 // characters
	if a.Output == Plain {
		return set.String()
	}
	return set.Short(most)
}
