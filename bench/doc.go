// Package bench holds the benchmarks that compare Kiloshard with other ways to do the same: a package for each command of
// kiloshard-lab bench.
//
// Every benchmark runs all sides in one run, on the same servers, in turns, so that a slow machine slows all of them. It
// reports the figures of that run and their ratios; the ratio of two sides is the median of their ratios turn by turn.
package bench
