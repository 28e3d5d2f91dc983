package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Report prints what users felt, as tables for people, and what came of their writes. Nothing may be under way.
func (l *Load) Report(out io.Writer, c Checked) error {
	// The attempts of the check came after the load.
	attempts := slices.DeleteFunc(slices.Clone(l.attempts), func(a attempt) bool { return a.kind == "check" })
	fmt.Fprintf(out, "%s of load, %d requests a second, %d users at the end. Times are in milliseconds, from when a\n",
		l.ran.Round(time.Second), l.cfg.Rate, len(l.books.users))
	fmt.Fprint(out, "request was due until it had succeeded, with all pauses and attempts.\n\n")

	if err := l.reportKinds(out); err != nil {
		return err
	}
	if err := l.reportEvents(out, attempts); err != nil {
		return err
	}
	if err := l.reportErrors(out, attempts); err != nil {
		return err
	}
	l.reportIncomplete(out)
	if err := l.reportGaps(out, attempts); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d acknowledged writes were looked at, one by one: %d lost, %d doubled.\n", c.Acknowledged, c.Lost, c.Doubled)
	if c.GivenUp == 0 {
		fmt.Fprintln(out, "No write was given up.")
	} else {
		fmt.Fprintf(out, "%d writes were given up by their users, who do not know what came of them: %d are there, once.\n", c.GivenUp, c.GivenUpThere)
	}
	if c.Unread > 0 {
		fmt.Fprintf(out, "%d times the service did not say what is there.\n", c.Unread)
	}
	for _, example := range c.Examples {
		fmt.Fprintln(out, " ", example)
	}
	return nil
}

// hosts returns the hosts that requests were for.
func (l *Load) hosts() []string {
	seen := map[string]bool{}
	for _, r := range l.requests {
		if r.host != "" {
			seen[r.host] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
