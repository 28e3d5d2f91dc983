package bench

import (
	"fmt"
	"slices"
	"strings"
)

// part is one of those that a benchmark has, any of which may be run alone.
type part[F any] struct {
	name string
	run  F
}

// namesOf returns the names of parts, in their order.
func namesOf[F any](parts []part[F]) []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// runParts runs those of the parts that are chosen, one after the other, and stops at the first that fails.
func runParts[F any](parts []part[F], only []string, run func(part[F]) error) error {
	parts, err := chosen(parts, only)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := run(p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// chosen returns the parts with the names, in the order of the parts, or all without a name. Its error says which name
// is none.
func chosen[F any](parts []part[F], only []string) ([]part[F], error) {
	names := namesOf(parts)
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("part %q: expected one of %s", name, strings.Join(names, ", "))
		}
	}
	if len(only) == 0 {
		return parts, nil
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p part[F]) bool { return !slices.Contains(only, p.name) }), nil
}
