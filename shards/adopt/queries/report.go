package queries

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/internal/figures"
	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards/adopt/page"
)

// heads are what the classes mean.
var heads = map[Class]string{
	Change:     "needs a change",
	CrossShard: "a join or a transaction across shards",
	Unread:     "not read",
	FanOut:     "fan-out: several shards",
	ByChain:    "one shard, after a lookup of the key",
	ByKey:      "one shard, by the key",
	Elsewhere:  "no sharded table",
}

// Summary is how much of a service's statements is of one class.
type Summary struct {
	Class      Class   `json:"class"`
	Means      string  `json:"means"`
	Statements int     `json:"statements"`
	Calls      int64   `json:"calls"`
	Seconds    float64 `json:"seconds"`
}

// Summarize returns a summary of each class, the worst first.
func Summarize(all []Statement) []Summary {
	summaries := make([]Summary, len(Classes))
	for i, class := range Classes {
		summaries[i] = Summary{Class: class, Means: heads[class]}
		for _, s := range all {
			if s.Class == class {
				summaries[i].Statements++
				summaries[i].Calls += s.Calls
				summaries[i].Seconds += s.Seconds
			}
		}
	}
	return summaries
}

// Page returns the sorted statements as a report; most limits how many there are of each class, 0 for all.
func Page(all []Statement, facts []string, most int) page.Page {
	report := page.Page{Title: "Statements, and where they go", Facts: facts}
	var total float64
	for _, s := range all {
		total += s.Seconds
	}
	summary := page.Section{ID: "classes", Head: "Classes", Columns: []string{"CLASS", "MEANS", ">STATEMENTS", ">CALLS", ">SECONDS", ">OF THE TIME"}}
	for _, s := range Summarize(all) {
		share := ""
		if total > 0 {
			share = fmt.Sprintf("%.1f %%", 100*s.Seconds/total)
		}
		summary.Rows = append(summary.Rows, []string{
			string(s.Class), s.Means, figures.Thousands(int64(s.Statements)), figures.Thousands(s.Calls), fmt.Sprintf("%.3f", s.Seconds), share,
		})
	}
	report.Add(summary)
	for _, class := range Classes {
		section := page.Section{ID: string(class), Head: strings.ToUpper(heads[class][:1]) + heads[class][1:], Columns: []string{">CALLS", ">SECONDS", "WHY", "~STATEMENT"}}
		count := 0
		for _, s := range all {
			if s.Class != class {
				continue
			}
			if count++; most == 0 || count <= most {
				section.Rows = append(section.Rows, []string{figures.Thousands(s.Calls), fmt.Sprintf("%.3f", s.Seconds), s.Why, sqltext.Shortened(s.SQL)})
			}
		}
		if most > 0 && count > most {
			section.Note = fmt.Sprintf("The first %d of %d, by time.", most, count)
		}
		report.Add(section)
	}
	return report
}
