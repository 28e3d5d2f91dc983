package htmlreport

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// slowestShown is how many of the slowest shards are listed.
const slowestShown = 10

// view is the data of the page, as texts.
type view struct {
	Run, By, Began, Took string
	Cluster              string
	Target               int32
	Verdict              string
	Outcomes             []count
	Steps                []migrate.Step
	Changed              []migrate.ChangedFile
	Causes               []string
	Scale                []band
	Hosts                []host
	Failures             []failure
	FailuresLeftOut      int // shards
	Slowest              []slow
}

// count is the number of shards with one outcome.
type count struct {
	Class  string // of their squares
	Name   string
	Shards int
}

type host struct {
	Name    string
	Shards  int
	Summary string // "4,090 done, 6 failed"
	Squares []square
}

type square struct{ Class, Title string }

type slow struct {
	Shard    shards.Number
	Host     string
	From, To int32
	Took     string
	Retries  int
}

func newView(seen map[shards.Number]seen, m *shards.Map, report migrate.Report, partial *shards.PartialError) view {
	v := view{
		Run: report.Run, By: report.By, Began: report.Began.UTC().Format("2006-01-02 15:04:05 UTC"), Took: rounded(report.Elapsed),
		Cluster: m.Config().Cluster, Target: report.Target, Steps: report.Steps, Changed: report.Changed,
	}
	for _, cause := range partial.Causes {
		v.Causes = append(v.Causes, cause.Error())
	}
	all := outcomesOf(m, report, partial)
	scale := newScale(durations(seen, all))
	v.Scale = scale.bands()
	for _, h := range m.Hosts() {
		v.Hosts = append(v.Hosts, newHost(m, h.Name, seen, all, scale))
	}
	total := counts(all.of)
	for _, o := range shown {
		v.Outcomes = append(v.Outcomes, count{Class: o.class(), Name: o.String(), Shards: total[o]})
	}
	v.Verdict = verdict(total, len(report.Steps) > 0, partial)
	v.Failures, v.FailuresLeftOut = failures(partial.Failed)
	v.Slowest = slowest(seen, m)
	return v
}

// verdict is the result of the run in a word or two. Failed shards may have run some files.
func verdict(total map[outcome]int, moved bool, partial *shards.PartialError) string {
	switch {
	case total[failed] == 0 && total[notAttempted] == 0 && len(partial.Causes) == 0:
		return "all done"
	case total[done] == 0 && !moved:
		return "nothing is done"
	}
	return "partly done"
}

func newHost(m *shards.Map, name string, seen map[shards.Number]seen, all outcomes, scale scale) host {
	numbers := m.NumbersOn(name)
	h := host{Name: name, Shards: len(numbers), Squares: make([]square, len(numbers))}
	most := min(300, max(60, titleErrors/max(1, len(all.errs))))
	mine := make([]outcome, len(numbers))
	for i, n := range numbers {
		o, s := all.of[n], seen[n]
		mine[i] = o
		class := o.class()
		if o == done && s.ended {
			class = scale.class(s.took)
		}
		h.Squares[i] = square{Class: class, Title: title(m.Schema(n), name, n, o, s, all.errs[n], most)}
	}
	total := counts(mine)
	for _, o := range shown {
		if total[o] > 0 {
			if h.Summary != "" {
				h.Summary += ", "
			}
			h.Summary += fmt.Sprintf("%d %s", total[o], o)
		}
	}
	return h
}

// title describes one shard, with at most the given number of characters of its error.
func title(schema, host string, n shards.Number, o outcome, s seen, err error, most int) string {
	text := fmt.Sprintf("shard %d (%s on %s): %s", n, schema, host, o)
	if s.ended {
		text += fmt.Sprintf(", version %d → %d in %s", s.from, s.to, rounded(s.took))
	}
	if s.retries > 0 {
		text += fmt.Sprintf(", tried %d times", s.retries+1)
	}
	if err != nil {
		text += ": " + shortened(err.Error(), most)
	}
	return text
}

// slowest returns the done and failed shards that took longest.
func slowest(seen map[shards.Number]seen, m *shards.Map) []slow {
	var numbers []shards.Number
	for n, s := range seen {
		if s.ended && m.Has(n) {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b shards.Number) int {
		return cmp.Or(cmp.Compare(seen[b].took, seen[a].took), cmp.Compare(a, b))
	})
	var list []slow
	for _, n := range numbers[:min(slowestShown, len(numbers))] {
		s := seen[n]
		list = append(list, slow{Shard: n, Host: m.Host(n).Name, From: s.from, To: s.to, Took: rounded(s.took), Retries: s.retries})
	}
	return list
}

// rounded returns a duration with about three digits.
func rounded(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// shortened returns a text cut off at a number of characters.
func shortened(text string, most int) string {
	if short := []rune(text); len(short) > most {
		return string(short[:most-1]) + "…"
	}
	return text
}
