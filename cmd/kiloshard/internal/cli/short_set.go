package cli

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// ShortSet returns the shards of a set for a column of a table: in one for people the first of them and how many more there
// are, where they are many.
func (a *App) ShortSet(set shards.Set) string {
	const most = 40 // characters
	text := set.String()
	if len(text) <= most || a.Output == Plain {
		return text
	}
	shown := text[:strings.LastIndexByte(text[:most], ',')]
	if first, err := shards.ParseSet(shown); err == nil {
		return fmt.Sprintf("%s and %s more", shown, Thousands(set.Len()-first.Len()))
	}
	return text
}
