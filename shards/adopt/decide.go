package adopt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// decide takes the decisions of the file, and makes the graph that follows from them.
func (p *Plan) decide(file *File) error {
	options := tables.Options{Choices: map[tables.Name]tables.Choice{}}
	if file == nil {
		file = &File{}
	} else {
		p.compare(file)
	}
	for i, link := range file.Links {
		f := tables.ForeignKey{Name: link.Name(), From: link.From, To: link.To, Columns: link.Columns, References: link.References}
		if f.NotNull = p.catalog.NotNull(f); p.catalog.CheckLink(f) != nil {
			return file.wrong(fmt.Sprintf("links[%d]", i), p.catalog.CheckLink(f).Error(), "tables and columns that are there, and refer to a unique key")
		}
		options.Links = append(options.Links, f)
	}
	for i, d := range file.Tables {
		t := p.Table(d.Table)
		if t == nil || d.Is == Undecided {
			continue
		}
		t.decided = &file.Tables[i]
		switch d.Is {
		case Reference, Left:
			if d.Table == p.Key.Table {
				return file.wrong(fmt.Sprintf("tables[%d].is", i), string(d.Is), "keyed, since the table has the key")
			}
			options.Without = append(options.Without, d.Table)
		case Keyed:
			if d.By != "" {
				options.Choices[d.Table] = tables.Choice{Column: d.By}
			}
		case Chained:
			if d.Through != "" {
				options.Choices[d.Table] = tables.Choice{Through: d.Through}
			}
		}
	}
	for _, t := range p.Tables {
		if why := staysLeft(t, p.catalog.Table(t.Table)); why != "" && t.decided == nil {
			t.Is, t.Why = Left, why
			options.Without = append(options.Without, t.Table)
		}
	}
	var err error
	if p.graph, err = tables.NewGraph(p.catalog, p.Key, options); err != nil {
		return file.wrong("tables", err.Error(), "tables, columns and foreign keys that are there, and lead to the key")
	}
	for i, d := range file.Tables {
		if err := p.checkDecision(file, fmt.Sprintf("tables[%d]", i), d); err != nil {
			return err
		}
	}
	return nil
}

// compare finds the tables that only one of file and database has.
func (p *Plan) compare(file *File) {
	for _, d := range file.Tables {
		if p.Table(d.Table) == nil {
			p.Missing = append(p.Missing, d.Table)
		}
	}
	for _, t := range p.Tables {
		if !slices.ContainsFunc(file.Tables, func(d Decision) bool { return d.Table == t.Table }) {
			p.New = append(p.New, t.Table)
		}
	}
}

// checkDecision returns an error for a decision that the structure does not allow.
func (p *Plan) checkDecision(file *File, at string, d Decision) error {
	if p.Table(d.Table) == nil || !d.Is.Sharded() {
		return nil
	}
	route, ok := p.graph.Route(d.Table)
	switch {
	case d.Is == Keyed && d.By == "" && (!ok || len(route.Links) > 0):
		return file.wrong(at, "keyed, without by", "by: the column that has the key")
	case d.Is == Chained && (!ok || len(route.Links) == 0):
		return file.wrong(at, "chained, without a foreign key that leads to the key", "through: the foreign key that does, or a link in links")
	}
	if err := p.checkIDs(file, at, d); err != nil {
		return err
	}
	for i, name := range d.Crosses {
		if !slices.ContainsFunc(p.graph.Crossings(d.Table), func(c tables.Crossing) bool { return c.ForeignKey.Name == name }) {
			return file.wrong(fmt.Sprintf("%s.crosses[%d]", at, i), name, "a foreign key of "+d.Table.String()+" that can lead to another key")
		}
	}
	return nil
}

// tools are the tables of migration tools.
var tools = []string{
	"schema_migrations", "ar_internal_metadata", "schema_migration", "flyway_schema_history", "databasechangelog", "databasechangeloglock",
	"alembic_version", "django_migrations", "knex_migrations", "knex_migrations_lock", "goose_db_version", "gorp_migrations", "schema_version",
	"atlas_schema_revisions", "_prisma_migrations", "sequelizemeta", "typeorm_metadata", "phinxlog", "doctrine_migration_versions", "pgmigrations",
}

// staysLeft returns why a table is left behind without a look at its rows, or nothing.
func staysLeft(t *TablePlan, table *tables.Table) string {
	switch {
	case table.Kind == tables.Foreign:
		return "a foreign table: its rows are elsewhere"
	case slices.Contains(tools, strings.ToLower(t.Table.Table)):
		return "the table of a migration tool"
	}
	return ""
}
