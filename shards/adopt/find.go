package adopt

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// Rule is a kind of findings.
type Rule struct {
	Kind string `json:"kind"`
	Head string `json:"head"`
	What string `json:"what"` // it means, and what to do
}

// CannotMove is the kind of findings that are the problems of package structure: tables that shards cannot have as they are.
const CannotMove = "cannot-move"

// Rules are the kinds of findings, in the order in which a report has them.
var Rules = []Rule{
	{CannotMove, "Sharded tables whose rows cannot move yet", "adopt views works with them. adopt tables refuses until each is mended, or its table is left behind."},
	{"key-changes", "Statements that change keys", "A row cannot go to another shard by UPDATE: delete and insert it, or keep the key."},
	{"foreign-key-crosses", "Foreign keys that cross keys", "Shards do not have these. Keep the row in the shard of one side; if both sides look it up, keep a second table by the other side, as router/objects does."},
	{"foreign-key-out", "Foreign keys between shards and other tables", "They hold while rows are in one database. Shards do not have those that refer to tables left behind, and no other table can refer to rows of shards: drop those before adopt finish."},
	{"unique-without-key", "Unique keys that do not hold the key", "They become unique per shard only. If a value must be unique in all, give it a directory, as kiloshard help sign-up does for e-mail addresses."},
	{"exclusion", "Exclusion constraints", "They hold per shard only."},
	{"no-primary-key", "Sharded tables without a primary key", "Rows are compared and mirrored by it: add one."},
	{"int4-id", "IDs that are not bigint", "IDs of next_id() need bigint: change the column, or keep its sequence."},
	{"beyond-2-53", "IDs above 2^53", "JavaScript rounds them: send them as strings."},
	{"sequence", "Sequences that are not of one column", "Code draws from them, or several columns do: say where their numbers come from in a shard."},
	{"trigger", "Triggers of sharded tables", "Each shard gets them. One that reaches rows of other keys finds those of its shard alone."},
	{"rule", "Rules of sharded tables", "Make them triggers: they rewrite statements for one table."},
	{"row-security", "Row security of sharded tables", "Each shard needs its policies. A role that they hold back counts too few rows."},
	{"view", "Views over sharded tables", "Each shard gets its own, over its own rows. Those over the old tables see no change from adopt finish on."},
	{"publication", "Publications of sharded tables", "Subscribers get nothing from adopt finish on. Publish the tables of shards to them."},
	{"function", "Functions that name sharded tables", "Each shard needs its own, or SET search_path FROM CURRENT."},
	{"type", "Types of columns of sharded tables", "Keep them in a schema of search_path: in kiloshard.yaml."},
	{"inherits", "Tables that inherit", "A foreign key does not cover the rows of children: each is a table of its own here."},
	{"unlogged", "Unlogged sharded tables", "They are empty after a crash, and moves refuse them."},
	{"extension", "Extensions", "List those that shards need in extensions: of kiloshard.yaml."},
	{"large-objects", "Large objects", "They belong to no table and no shard: they stay."},
}

// find adds what a person should know.
func (p *Plan) find(ctx context.Context, tx pgx.Tx) error {
	found := map[string][]Finding{}
	add := func(kind, table, object, text string) {
		found[kind] = append(found[kind], Finding{kind, table, object, text})
	}
	p.findInStructure(add)
	for _, part := range []struct {
		what string
		find func(context.Context, pgx.Tx, func(kind, table, object, text string)) error
	}{
		{"IDs", p.findIDs}, {"sequences", p.findSequences}, {"objects of tables", p.findObjects}, {"functions", p.findFunctions},
	} {
		if err := apart(ctx, tx, func(tx pgx.Tx) error { return part.find(ctx, tx, add) }); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	for _, rule := range Rules {
		p.Findings = append(p.Findings, found[rule.Kind]...)
	}
	return nil
}

// findInStructure finds what the catalog of tables says.
func (p *Plan) findInStructure(add func(kind, table, object, text string)) {
	for _, t := range p.Tables {
		table, name := p.catalog.Table(t.Table), t.Table.String()
		for _, c := range t.Crossings {
			if c.Rows > 0 {
				add("foreign-key-crosses", name, c.ForeignKey, fmt.Sprintf("%d of %d rows lead to another key in %s by %s", c.Rows, t.Looked, c.To, c.crossing.Route))
			}
		}
		if len(table.Parents) > 0 {
			add("inherits", name, "", "from "+join(table.Parents))
		}
		if !t.Is.Sharded() {
			continue
		}
		if table.PrimaryKey() == nil {
			add("no-primary-key", name, "", fmt.Sprintf("%d rows", t.Looked))
		}
		if table.Unlogged {
			add("unlogged", name, "", "unlogged")
		}
		for _, key := range table.Keys {
			if !p.holdsKey(t, key) && !p.uniqueAnyway(table, key) {
				add("unique-without-key", name, key.Name, keyText(key))
			}
		}
	}
	for _, f := range p.graph.Links() {
		from, to := p.Table(f.From), p.Table(f.To)
		switch {
		case !f.Declared:
		case from.Is.Sharded() && to.Is == Left:
			add("foreign-key-out", f.From.String(), f.Name, "refers to "+f.To.String()+", which is left behind")
		case to.Is.Sharded() && (from.Is == Left || from.Is == Reference):
			add("foreign-key-out", f.From.String(), f.Name, fmt.Sprintf("a table that is %s refers to %s", from.Is, f.To))
		}
	}
}

// holdsKey reports whether rows with equal values of a unique key must be in one shard: it has the column of the table's key, or the first
// link.
func (p *Plan) holdsKey(t *TablePlan, key tables.UniqueKey) bool {
	needed := []string{t.route.Column}
	if len(t.route.Links) > 0 {
		needed = t.route.Links[0].Columns
	}
	has := map[string]bool{}
	for _, c := range key.Columns {
		has[c] = true
	}
	for _, c := range needed {
		if !has[c] {
			return false
		}
	}
	return true
}

// uniqueAnyway reports whether the values of a unique key are made unique: by one sequence for all shards, or as UUIDs.
func (p *Plan) uniqueAnyway(table *tables.Table, key tables.UniqueKey) bool {
	for _, name := range key.Columns {
		column := table.Column(name)
		if column.Sequence != "" || column.Type == "uuid" {
			return true
		}
	}
	return false
}

func keyText(key tables.UniqueKey) string {
	text := "(" + strings.Join(key.Columns, ", ") + ")"
	if key.Computed {
		text = "(" + strings.Join(append(key.Columns, "an expression"), ", ") + ")"
	}
	if key.Primary {
		text = "primary key " + text
	}
	if key.Partial {
		text += ", of some rows"
	}
	return text
}

func join(names []tables.Name) string {
	var all []string
	for _, n := range names {
		all = append(all, n.String())
	}
	return strings.Join(all, ", ")
}
