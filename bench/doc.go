// Package bench compares Kiloshard with other ways to do the same.
//
// Every benchmark runs all sides in one run, on the same servers, in turns, so that a slow machine
// slows all of them. It reports the figures of that run and their ratios; the ratio of two sides is
// the median of their ratios turn by turn. kiloshard-lab bench prints them.
package bench
