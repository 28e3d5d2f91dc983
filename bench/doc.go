// Package bench is the bench harness: what Kiloshard does beside the other ways to do it.
//
// Every benchmark runs all sides in one run, on the same servers, taking turns, so that a machine
// that slows down slows them all. What it reports are the figures of that run and their ratios; the
// ratio of two sides is the median of their ratios turn by turn. The command line prints them:
// kiloshard bench.
package bench
