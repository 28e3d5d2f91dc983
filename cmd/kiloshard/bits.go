package main

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// bits draws the 64 bits of an ID, with its fields under them.
func bits(layout shards.Layout, id shards.ID) string {
	parts := layout.Parts(id)
	digits := fmt.Sprintf("%064b", uint64(id))
	widths := []int{64 - layout.Shard - layout.Sequence, layout.Shard, layout.Sequence}
	texts := []string{
		fmt.Sprintf("%d ms since the epoch", parts.Milliseconds),
		fmt.Sprintf("shard %d", parts.Shard),
		fmt.Sprintf("slot %d", parts.Sequence),
	}
	var top, bottom strings.Builder
	for i, width := range widths {
		if i > 0 {
			top.WriteString(" | ")
			bottom.WriteString(" | ")
		}
		cell := max(width, len(texts[i]))
		fmt.Fprintf(&top, "%-*s", cell, digits[:width])
		fmt.Fprintf(&bottom, "%-*s", cell, texts[i])
		digits = digits[width:]
	}
	return strings.TrimRight(top.String(), " ") + "\n" + strings.TrimRight(bottom.String(), " ")
}
