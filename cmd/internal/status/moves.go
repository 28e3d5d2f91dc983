package status

import (
	"slices"

	"github.com/kiloshard/kiloshard/cmd/internal/moves"
	"github.com/kiloshard/kiloshard/shards"
)

// withoutMoves takes the shards that moves under way have half made on a host out of its strays.
func (h *hostStatus) withoutMoves(underWay []moves.Row) {
	var left []shards.Number
	for n := range h.Strays.All() {
		if !slices.ContainsFunc(underWay, func(v moves.Row) bool { return v.Shard == n && v.Target == h.Host }) {
			left = append(left, n)
		}
	}
	h.Strays = shards.SetOf(left...)
}

// fencedOnly reports whether all shards that a host is without are fenced there.
func (h *hostStatus) fencedOnly(underWay []moves.Row) bool {
	for n := range h.Missing.All() {
		if !slices.ContainsFunc(underWay, func(v moves.Row) bool { return v.Shard == n && v.Source == h.Host && v.Fenced() }) {
			return false
		}
	}
	return true
}
