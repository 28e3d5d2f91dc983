// Package harness runs benchmarks: the parts that were chosen, and the turns of their sides.
package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Part is a part of a benchmark that can run alone. S is its state.
type Part[S any] struct {
	Name string
	Run  func(ctx context.Context, state S) error
}

// Names returns the names of parts, in order.
func Names[S any](parts []Part[S]) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Name
	}
	return names
}

// Run calls run for the parts with the given names in the order of parts, or for all if there are no names. It stops at the
// first part that fails. An unknown name is an error, before any part runs.
func Run[S any](parts []Part[S], only []string, run func(Part[S]) error) error {
	names := Names(parts)
	for _, name := range only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("part %q: expected one of %s", name, strings.Join(names, ", "))
		}
	}
	for _, p := range parts {
		if len(only) > 0 && !slices.Contains(only, p.Name) {
			continue
		}
		if err := run(p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// Turns calls turn for each of the sides 0 to n-1 in each round. Every round begins with another side, so that none gains
// by its place. It stops at the first error.
func Turns(rounds, n int, turn func(round, side int) error) error {
	for round := range rounds {
		for k := range n {
			if err := turn(round, (k+round)%n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Together runs fn(0) to fn(n-1) at once and joins their errors.
func Together(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Time returns how many seconds fn takes.
func Time(fn func() error) (seconds float64, err error) {
	start := time.Now()
	err = fn()
	return time.Since(start).Seconds(), err
}
