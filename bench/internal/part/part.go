// Package part runs the chosen parts of a benchmark.
package part

import (
	"fmt"
	"slices"
	"strings"
)

// Part is a part of a benchmark that can run alone.
type Part[F any] struct {
	Name string
	Run  F
}

// Names returns the names of parts, in order.
func Names[F any](parts []Part[F]) []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	return names
}

// Run runs the chosen parts one after the other, and stops at the first that fails.
func Run[F any](parts []Part[F], only []string, run func(Part[F]) error) error {
	parts, err := chosen(parts, only)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := run(p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// chosen returns the parts with the given names, in the order of parts, or all if there are no names. The error contains an
// unknown name.
func chosen[F any](parts []Part[F], only []string) ([]Part[F], error) {
	names := Names(parts)
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("part %q: expected one of %s", name, strings.Join(names, ", "))
		}
	}
	if len(only) == 0 {
		return parts, nil
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p Part[F]) bool { return !slices.Contains(only, p.Name) }), nil
}
