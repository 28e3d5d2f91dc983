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

// NumbersOf returns the shards that failed.
func NumbersOf(failed []*shards.ShardError) shards.Set {
	numbers := make([]shards.Number, len(failed))
	for i, f := range failed {
		numbers[i] = f.Shard
	}
	return shards.SetOf(numbers...)
}
