package adopt

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/internal/figures"
	"github.com/kiloshard/kiloshard/shards/adopt/page"
)

// Page returns the plan as a report.
func (p *Plan) Page() page.Page {
	key := fmt.Sprintf("The key is %s. Its shard is %s for 4096 shards.", p.Key, p.Strategy.Shard(p.Key.Column, 4096))
	facts := []string{key, fmt.Sprintf("%s in %s tables; a second copy of the sharded ones needs %s.",
		figures.Megabytes(p.Bytes), figures.Thousands(len(p.Tables)), figures.Megabytes(p.Disk))}
	if p.Sample < 100 {
		facts = append(facts, fmt.Sprintf("Rows are those of a sample: %g per cent of the pages.", p.Sample))
	}
	report := page.Page{Title: "Plan to adopt a database", Facts: facts}
	report.Add(p.undecidedSection())
	report.Add(p.tablesSection())
	for _, rule := range Rules {
		report.Add(p.ruleSection(rule))
	}
	report.Add(p.spreadSection())
	report.Add(p.orderSection())
	return report
}

func (p *Plan) undecidedSection() page.Section {
	s := page.Section{
		ID: "undecided", Head: "To decide", Note: "Put one of the lines under a table into adopt.yaml, then run the plan again.",
		Columns: []string{"TABLE", "WHY, AND WHAT CAN BE"},
	}
	for _, t := range p.Tables {
		if t.Is != Undecided {
			continue
		}
		s.Rows = append(s.Rows, []string{t.Table.String(), t.Why})
		for _, option := range t.Options {
			s.Rows = append(s.Rows, []string{"", "- " + option})
		}
	}
	return s
}

func (p *Plan) tablesSection() page.Section {
	s := page.Section{ID: "tables", Head: "Tables", Columns: []string{"TABLE", "IS", "~KEY", ">ROWS", ">SIZE", "~WHY"}}
	for _, t := range p.Tables {
		rows := "?"
		if t.Looked > 0 && p.Sample == 100 {
			rows = figures.Thousands(t.Looked)
		} else if t.Rows >= 0 {
			rows = "~" + figures.Thousands(t.Rows)
		}
		why := t.Why
		if t.Is == Undecided {
			why = "see above"
		}
		s.Rows = append(s.Rows, []string{t.Table.String(), string(t.Is), t.Route, rows, figures.Megabytes(t.Bytes), why})
	}
	return s
}

func (p *Plan) ruleSection(rule Rule) page.Section {
	s := page.Section{ID: rule.Kind, Head: rule.Head, Note: rule.What, Columns: []string{"TABLE", "OBJECT", "~WHAT"}}
	for _, f := range p.Findings {
		if f.Kind == rule.Kind {
			s.Rows = append(s.Rows, []string{f.Table, f.Object, f.Text})
		}
	}
	return s
}

func (p *Plan) spreadSection() page.Section {
	s := page.Section{
		ID: "shards", Head: "Sizes of shards", Note: "Of the sharded tables that are decided. One key is in one shard, however large it is.",
		Columns: []string{">SHARDS", ">SMALLEST", ">MEDIAN", ">LARGEST", ">ROWS OF THE LARGEST", ">EMPTY"},
	}
	for _, n := range p.Spreads {
		s.Rows = append(s.Rows, []string{
			figures.Thousands(int64(n.ShardCount)), figures.Megabytes(n.Smallest), figures.Megabytes(n.Median), figures.Megabytes(n.Largest), figures.Thousands(n.Rows), figures.Thousands(int64(n.Empty)),
		})
	}
	return s
}

func (p *Plan) orderSection() page.Section {
	s := page.Section{
		ID: "order", Head: "Order of inserts", Note: "Rows of sharded tables can be inserted in this order, and deleted in the reverse.", Columns: []string{"WHAT", "~WHICH"},
	}
	if len(p.Order) > 0 {
		s.Rows = append(s.Rows, []string{"tables", join(p.Order)})
	}
	if len(p.Deferred) > 0 {
		s.Rows = append(s.Rows, []string{"to defer, or to set afterwards", strings.Join(p.Deferred, "; ")})
	}
	return s
}
