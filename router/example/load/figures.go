package load

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// figures are a table with a line for each of some groups of requests.
type figures struct {
	*Load
	title string
	names []string
	lines []string
}

// add adds the line of the requests that belong to a group.
func (f *figures) add(name string, of func(request) bool) {
	var took []time.Duration
	again, givenUp := 0, 0
	for _, r := range f.requests {
		if !of(r) {
			continue
		}
		took = append(took, r.took)
		if r.tries > 1 {
			again++
		}
		if r.failure != "" {
			givenUp++
		}
	}
	slices.Sort(took)
	f.names = append(f.names, name)
	f.lines = append(f.lines, fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s\t%s", len(took), again, givenUp,
		quantile(took, 0.5), quantile(took, 0.99), quantile(took, 0.999), quantile(took, 1)))
}

// print prints the table: names to the left, figures to the right.
func (f *figures) print(out io.Writer) error {
	width := len(f.title)
	for _, name := range f.names {
		width = max(width, len(name))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%-*s\tCOUNT\tTRIED AGAIN\tGIVEN UP\tP50\tP99\tP99.9\tLONGEST\t\n", width, f.title)
	for i, name := range f.names {
		fmt.Fprintf(table, "%-*s\t%s\t\n", width, name, f.lines[i])
	}
	return table.Flush()
}

// reportKinds prints the figures of each kind of request, and of each host.
func (l *Load) reportKinds(out io.Writer) error {
	f := figures{Load: l, title: "REQUESTS"}
	for _, k := range kinds {
		f.add(k.name, func(r request) bool { return r.kind == k.name })
	}
	f.add("all", func(request) bool { return true })
	for _, host := range l.hosts() {
		f.add("of users on "+host, func(r request) bool { return r.host == host })
	}
	return f.print(out)
}

// reportEvents prints the figures of the requests that were due during each event, and during none. Where one host is
// concerned or attempts have failed, it tells the hosts apart: what happens to one leaves the users of the others alone.
func (l *Load) reportEvents(out io.Writer, attempts []attempt) error {
	fmt.Fprint(out, "\nThe same of requests that were due during an event, or within a second after it:\n\n")
	f := figures{Load: l, title: "DURING"}
	f.add("none of these", func(r request) bool {
		return !slices.ContainsFunc(l.events, func(e event) bool { return l.has(e, r.due) })
	})
	for _, e := range l.events {
		name := fmt.Sprintf("%s (%.1f to %.1f s)", e.name, e.from.Sub(l.began).Seconds(), e.to.Sub(l.began).Seconds())
		f.add(name, func(r request) bool { return l.has(e, r.due) })
		if !e.apart && !slices.ContainsFunc(attempts, func(a attempt) bool { return a.failure != "" && l.has(e, a.ended) }) {
			continue
		}
		for _, host := range l.hosts() {
			f.add("  of users on "+host, func(r request) bool { return r.host == host && l.has(e, r.due) })
		}
	}
	return f.print(out)
}

// quantile returns, in milliseconds, the smallest time that a part of all does not exceed.
func quantile(sorted []time.Duration, part float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	i := min(int(part*float64(len(sorted))), len(sorted)-1)
	return fmt.Sprintf("%.1f", float64(sorted[i].Microseconds())/1000)
}
