package adopt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// classify says what each table is by structure and file.
func (p *Plan) classify() {
	for _, t := range p.Tables {
		t.route, t.routed = p.graph.Route(t.Table)
		if t.routed {
			t.Route = t.route.String()
			for _, c := range p.graph.Crossings(t.Table) {
				accepted := t.decided != nil && slices.Contains(t.decided.Crosses, c.ForeignKey.Name)
				t.Crossings = append(t.Crossings, Crossing{ForeignKey: c.ForeignKey.Name, To: c.ForeignKey.To, Accepted: accepted, crossing: c})
			}
		}
		switch {
		case t.Is != "": // left
		case t.decided != nil:
			t.Is, t.Why = t.decided.Is, "as adopt.yaml says"
		case t.Table == p.Key.Table:
			t.Is, t.Why = Keyed, "it has the key"
		case !t.routed:
			t.Is, t.Why = Undecided, "it reaches no key, and no row of a shard refers to it"
		case len(t.route.Links) == 0:
			t.Is, t.Why = Keyed, "a column has the key"
		default:
			t.Is, t.Why = Chained, "a foreign key leads to the key"
		}
		if t.Is == Keyed {
			t.By = t.route.Column
		}
		if t.Is == Chained {
			t.Through = t.route.Links[0].Name
		}
	}
	p.references()
}

// references finds the tables without a key that rows of shards refer to, and those that these refer to.
func (p *Plan) references() {
	for changed := true; changed; {
		changed = false
		for _, f := range p.graph.Links() {
			from, to := p.Table(f.From), p.Table(f.To)
			if to.Is == Undecided && to.decided == nil && !to.routed && (from.Is.Sharded() || from.Is == Reference) {
				to.Is, to.Why = Reference, fmt.Sprintf("it reaches no key, and %s refers to it", from.Table)
				changed = true
			}
		}
	}
}

// judge says which tables are undecided, now that rows are counted or will not be.
func (p *Plan) judge() {
	for _, t := range p.Tables {
		if t.Is.Sharded() {
			if why := p.doubt(t); why != "" {
				t.Is, t.Why, t.By, t.Through = Undecided, why, "", ""
			}
		}
		if t.Is.Sharded() {
			p.setIDs(t)
		}
		if t.Is == Undecided {
			t.Options = p.options(t)
		}
	}
	order, broken := p.graph.Order()
	for _, name := range order {
		if p.Table(name).Is.Sharded() {
			p.Order = append(p.Order, name)
		}
	}
	for _, f := range broken {
		if p.Table(f.From).Is.Sharded() && p.Table(f.To).Is.Sharded() {
			p.Deferred = append(p.Deferred, f.From.String()+": "+f.String())
		}
	}
	for _, t := range p.Tables {
		if t.Is.Sharded() {
			p.Disk += t.Bytes
		}
	}
}

// doubt returns why a table that has a route is undecided, or nothing.
func (p *Plan) doubt(t *TablePlan) string {
	var why []string
	if t.failed != nil {
		why = append(why, "its rows cannot be counted: "+t.failed.Error())
	}
	crossed := false
	for _, c := range t.Crossings {
		if c.Rows > 0 && !c.Accepted {
			crossed = true
			why = append(why, fmt.Sprintf("by %s %s to rows of another key", c.crossing.ForeignKey, refer(c.Rows, t.Looked)))
		}
	}
	if without := t.Null + t.Broken; without > 0 && (t.decided == nil || t.decided.Keyless != Left) {
		why = append(why, fmt.Sprintf("%s no key by %s (%d null, %d broken)", have(without, t.Looked), t.route, t.Null, t.Broken))
	}
	if t.decided == nil && (t.Looked == 0 || p.Sample < 100) && !crossed {
		untold := "there are no rows to tell"
		if t.Looked > 0 {
			untold = "a sample cannot tell"
		}
		if columns := p.graph.Columns(t.Table); len(columns) > 1 {
			why = append(why, "several columns have a key, and "+untold+": "+strings.Join(columns, ", "))
		} else {
			for _, c := range t.Crossings {
				if c.crossing.ForeignKey.NotNull && c.To != t.Table && t.Table != p.Key.Table {
					why = append(why, fmt.Sprintf("%s also leads to a key, and %s", c.crossing.ForeignKey, untold))
				}
			}
		}
	}
	return strings.Join(why, "; ")
}

func refer(rows, of int64) string {
	if rows == 1 {
		return fmt.Sprintf("1 row of %d refers", of)
	}
	return fmt.Sprintf("%d rows of %d refer", rows, of)
}

func have(rows, of int64) string {
	if rows == 1 {
		return fmt.Sprintf("1 row of %d has", of)
	}
	return fmt.Sprintf("%d rows of %d have", rows, of)
}

// options returns what adopt.yaml can have for a table.
func (p *Plan) options(t *TablePlan) []string {
	var found []string
	add := func(d Decision, counted bool) { // counted: the counts are of this way
		if counted {
			d = t.accepting(d)
		}
		found = append(found, format.Flow(d))
	}
	columns := p.graph.Columns(t.Table)
	if len(columns) == 0 {
		columns = p.likely(t.Table)
	}
	for _, column := range columns {
		add(Decision{Table: t.Table, Is: Keyed, By: column}, t.routed && len(t.route.Links) == 0 && t.route.Column == column)
	}
	if t.Table == p.Key.Table {
		return found
	}
	for _, f := range p.graph.Choices(t.Table) {
		add(Decision{Table: t.Table, Is: Chained, Through: f.Name}, t.routed && len(t.route.Links) > 0 && t.route.Links[0].Name == f.Name)
	}
	for _, is := range []Class{Reference, Left} {
		add(Decision{Table: t.Table, Is: is}, false)
	}
	return found
}

// accepting returns a decision that accepts all that was counted.
func (t *TablePlan) accepting(d Decision) Decision {
	for _, c := range t.Crossings {
		if c.Rows > 0 || c.Accepted {
			d.Crosses = append(d.Crosses, c.ForeignKey)
		}
	}
	if t.Null+t.Broken > 0 || t.decided != nil && t.decided.Keyless != "" {
		d.Keyless = Left
	}
	return d
}

// likely returns the columns of a table that look like the key, by name and type: those named as columns that refer to it are.
func (p *Plan) likely(name tables.Name) []string {
	names := map[string]bool{strings.TrimSuffix(p.Key.Table.Table, "s") + "_" + p.Key.Column: true}
	for _, f := range p.catalog.ForeignKeys {
		if f.To == p.Key.Table && len(f.Columns) == 1 && f.References[0] == p.Key.Column {
			names[f.Columns[0]] = true
		}
	}
	var found []string
	key := p.catalog.Table(p.Key.Table).Column(p.Key.Column)
	for _, column := range p.catalog.Table(name).Columns {
		if names[column.Name] && sameFamily(column.Type, key.Type) {
			found = append(found, column.Name)
		}
	}
	return found
}

// sameFamily reports whether values of two types can be compared.
func sameFamily(a, b string) bool { return family(a) == family(b) }

func family(columnType string) string {
	switch s, ok := strategyFor(columnType); {
	case !ok, columnType == "uuid":
		return columnType
	default:
		return s.By
	}
}
