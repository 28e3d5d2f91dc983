package cli

import "github.com/kiloshard/kiloshard/shards"

// ShortSet returns the shards of a set for a column of a table: in one for people the first of them and how many more there
// are, where they are many.
func (a *App) ShortSet(set shards.Set) string {
	const most = 50 // characters
	if a.Output == Plain {
		return set.String()
	}
	return set.Short(most)
}
