package main

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// impersonal returns a text with the name and the number of one shard replaced by what stands for any, so that what is said
// of a thousand shards can be told to be the same.
func impersonal(m *shards.Map, schema, text string) string {
	text = strings.ReplaceAll(text, schema, "{schema}")
	n, ok := m.NumberOf(schema)
	if !ok {
		return text
	}
	return strings.ReplaceAll(text, fmt.Sprintf("(%d,", n), "({shard},") // as its functions call those of the helper schema
}
