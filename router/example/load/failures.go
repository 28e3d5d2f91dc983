package load

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// reportErrors prints which attempts failed, and when.
func (l *Load) reportErrors(out io.Writer, attempts []attempt) error {
	type group struct{ failure, kind, host string }
	type span struct {
		count       int
		first, last time.Duration
	}
	spans := map[group]*span{}
	for _, a := range attempts {
		if a.failure == "" {
			continue
		}
		of := group{a.failure, a.kind, cmp.Or(a.host, "unknown")}
		if spans[of] == nil {
			spans[of] = &span{first: a.ended, last: a.ended}
		}
		s := spans[of]
		s.count++
		s.first, s.last = min(s.first, a.ended), max(s.last, a.ended)
	}
	if len(spans) == 0 {
		_, err := fmt.Fprintln(out, "\nNo attempt failed.")
		return err
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ATTEMPTS THAT FAILED\tREQUEST\tHOST\tCOUNT\tFROM\tTO")
	sorted := slices.SortedFunc(maps.Keys(spans), func(a, b group) int {
		return cmp.Or(strings.Compare(a.failure, b.failure), strings.Compare(a.host, b.host), strings.Compare(a.kind, b.kind))
	})
	for _, of := range sorted {
		s := spans[of]
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%.1f s\t%.1f s\n", of.failure, of.kind, of.host, s.count, s.first.Seconds(), s.last.Seconds())
	}
	return table.Flush()
}

// reportIncomplete prints how many feeds lacked the photos of a host, and when.
func (l *Load) reportIncomplete(out io.Writer) {
	count := 0
	var first, last time.Duration
	for _, r := range l.requests {
		if r.incomplete {
			if count++; count == 1 {
				first = r.due
			}
			first, last = min(first, r.due), max(last, r.due)
		}
	}
	if count == 0 {
		fmt.Fprintln(out, "No feed was incomplete.")
		return
	}
	fmt.Fprintf(out, "%d feeds lacked the photos of a host that was down, from %.1f s to %.1f s.\n", count, first.Seconds(), last.Seconds())
}

// reportGaps prints for how long no user of a host had a success.
func (l *Load) reportGaps(out io.Writer, attempts []attempt) error {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LONGEST GAP IN SERVICE\tREADS\t\tWRITES\t")
	for _, host := range l.hosts() {
		fmt.Fprintf(table, "users on %s", host)
		for _, write := range []bool{false, true} {
			from, gap := l.gap(attempts, host, write)
			fmt.Fprintf(table, "\t%.2f s\tfrom %.1f s", gap.Seconds(), from.Seconds())
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// gap returns the longest time in which no read, or write, of a host's users had an answer.
func (l *Load) gap(attempts []attempt, host string, write bool) (from, gap time.Duration) {
	var ended []time.Duration
	for _, a := range attempts {
		if a.host == host && a.failure == "" && isWrite(a.kind) == write && a.ended <= l.ran {
			ended = append(ended, a.ended)
		}
	}
	slices.Sort(ended)
	last := time.Duration(0)
	for _, at := range append(ended, l.ran) {
		if at-last > gap {
			from, gap = last, at-last
		}
		last = at
	}
	return from, gap
}
