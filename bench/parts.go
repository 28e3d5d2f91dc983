package bench

import (
	"fmt"
	"slices"
	"strings"
)

// part is a part of a benchmark that can run alone.
type part[F any] struct {
	name string
	run  F
}

// namesOf returns the names of parts, in order.
func namesOf[F any](parts []part[F]) []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// runParts runs the chosen parts one after the other, and stops at the first that fails.
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

// chosen returns the parts with the given names, in the order of parts, or all if there are no names. The error contains an
// unknown name.
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
