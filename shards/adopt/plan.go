package adopt

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// Config is what [Look] and [Read] look at.
type Config struct {
	Host     shards.Host                       // the database
	Key      string                            // the column, such as users.id; defaults to the file's
	File     *File                             // decisions. Defaults to none
	Sample   float64                           // per cent of a table's pages whose rows are counted, at random. Defaults to 100
	Progress func(table string, of, total int) // is called before the rows of a table are counted. Defaults to none
}

// Plan is what becomes of a database.
type Plan struct {
	Key      tables.ColumnName `json:"key"`
	Strategy Strategy          `json:"strategy"`
	Sample   float64           `json:"sample"`   // per cent
	Tables   []*TablePlan      `json:"tables"`   // by name
	Missing  []tables.Name     `json:"missing"`  // tables of the file that the database does not have
	New      []tables.Name     `json:"new"`      // tables of the database that the file does not have
	Order    []tables.Name     `json:"order"`    // in which rows of the sharded tables can be inserted; the reverse for deletes
	Deferred []string          `json:"deferred"` // foreign keys to defer, or to set afterwards, in that order
	Findings []Finding         `json:"findings"`
	Spreads  []Spread          `json:"spreads"`
	Bytes    int64             `json:"bytes"`      // of all tables, with indexes
	Disk     int64             `json:"disk_bytes"` // needed for a second copy of the sharded tables

	catalog *tables.Catalog
	graph   *tables.Graph
	links   []Link
}

// TablePlan is what becomes of one table.
type TablePlan struct {
	Table     tables.Name `json:"table"`
	Is        Class       `json:"is"`
	By        string      `json:"by,omitempty"`      // of a keyed table
	Through   string      `json:"through,omitempty"` // of a chained table
	Route     string      `json:"route,omitempty"`   // from a row to its key
	Why       string      `json:"why"`
	Options   []string    `json:"options,omitempty"` // for an undecided table: what adopt.yaml can have
	ID        string      `json:"id,omitempty"`      // the column with the ID of a row, if it draws from a sequence
	IDs       IDs         `json:"ids,omitempty"`     // where the IDs of new rows come from; of a table with an ID
	Copy      bool        `json:"copy,omitempty"`    // COPY into a shard's view works
	Kind      tables.Kind `json:"kind"`
	Rows      int64       `json:"rows"`   // the planner's estimate; -1 if it has none
	Bytes     int64       `json:"bytes"`  // with indexes
	Looked    int64       `json:"looked"` // how many rows were counted
	Null      int64       `json:"null"`   // of these, rows whose key, or first link, is null
	Broken    int64       `json:"broken"` // of these, rows whose link leads to no key
	Crossings []Crossing  `json:"crossings,omitempty"`

	decided *Decision
	route   tables.Route
	routed  bool
	failed  error // of counting
	shards  []int64
}

// Crossing is a foreign key that can lead from a row to a row of another key.
type Crossing struct {
	ForeignKey string      `json:"foreign_key"`
	To         tables.Name `json:"to"`
	Rows       int64       `json:"rows"`     // that do so, of those counted
	Accepted   bool        `json:"accepted"` // by the file

	crossing tables.Crossing
}

// Finding is something that a person should know before rows move.
type Finding struct {
	Kind   string `json:"kind"` // short and stable, such as "unique-without-key"
	Table  string `json:"table,omitempty"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

// Undecided returns the tables that a person has to decide about.
func (p *Plan) Undecided() []tables.Name {
	var found []tables.Name
	for _, t := range p.Tables {
		if t.Is == Undecided {
			found = append(found, t.Table)
		}
	}
	return found
}

// Table returns the plan of a table, or nil.
func (p *Plan) Table(name tables.Name) *TablePlan {
	for _, t := range p.Tables {
		if t.Table == name {
			return t
		}
	}
	return nil
}

// Way returns the route from a row to its key.
func (t *TablePlan) Way() tables.Route { return t.route }

// Crosses reports whether a foreign key of the table leads to other keys: some rows do, or the file says that they may.
func (t *TablePlan) Crosses(foreignKey string) bool {
	return slices.ContainsFunc(t.Crossings, func(c Crossing) bool { return c.ForeignKey == foreignKey && (c.Rows > 0 || c.Accepted) })
}

// Catalog returns the tables that the plan is for.
func (p *Plan) Catalog() *tables.Catalog { return p.catalog }

// Graph returns how the tables of the plan reach the key.
func (p *Plan) Graph() *tables.Graph { return p.graph }

// Look reads the structure and counts the rows, in one transaction that is read only and sees one state of the database. It holds a lock
// on one table at a time. ctx governs the whole. The error is a [shards.FieldError] if the file or the key names what is not there. An
// error in counting a table does not end it: the table is undecided then. more reads on in the same transaction; it may be nil.
func Look(ctx context.Context, cfg Config, more func(context.Context, pgx.Tx, *Plan) error) (*Plan, error) {
	return look(ctx, cfg, func(ctx context.Context, tx pgx.Tx, p *Plan) error {
		if err := p.count(ctx, tx, cfg); err != nil {
			return err
		}
		p.judge()
		p.spread()
		if err := p.find(ctx, tx); err != nil || more == nil {
			return err
		}
		return more(ctx, tx, p)
	})
}

// Read is [Look] without counting rows: what the structure and the file say. more reads on in the same transaction; it may be nil.
func Read(ctx context.Context, cfg Config, more func(context.Context, pgx.Tx, *Plan) error) (*Plan, error) {
	return look(ctx, cfg, func(ctx context.Context, tx pgx.Tx, p *Plan) error {
		p.judge()
		if err := p.find(ctx, tx); err != nil || more == nil {
			return err
		}
		return more(ctx, tx, p)
	})
}

func look(ctx context.Context, cfg Config, more func(context.Context, pgx.Tx, *Plan) error) (*Plan, error) {
	if cfg.Sample == 0 {
		cfg.Sample = 100
	}
	var p *Plan
	err := inSnapshot(ctx, cfg.Host, func(tx pgx.Tx) error {
		catalog, err := tables.Read(ctx, tx)
		if err != nil {
			return err
		}
		if p, err = newPlan(catalog, cfg); err != nil {
			return err
		}
		if err := checkCollation(ctx, tx, p.Key); err != nil {
			return err
		}
		return more(ctx, tx, p)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// newPlan returns what structure and file say.
func newPlan(catalog *tables.Catalog, cfg Config) (*Plan, error) {
	p := &Plan{
		Sample: cfg.Sample, catalog: catalog, Missing: []tables.Name{}, New: []tables.Name{}, Order: []tables.Name{}, Deferred: []string{},
		Findings: []Finding{}, Spreads: []Spread{},
	}
	var err error
	if p.Key, err = findKey(catalog, cfg); err != nil {
		return nil, err
	}
	column := catalog.Table(p.Key.Table).Column(p.Key.Column)
	strategy, ok := strategyFor(column.Type)
	if cfg.File != nil {
		if p.Strategy = cfg.File.Strategy; ok && p.Strategy.By == "modulo" && strategy.By != "modulo" {
			return nil, cfg.File.wrong("strategy", "modulo for "+p.Key.String()+", of type "+column.Type, expectedStrategy)
		}
		p.links = cfg.File.Links
	} else {
		p.Strategy = strategy
	}
	if !ok {
		return nil, &shards.FieldError{Field: "key", Found: p.Key.String() + " of type " + column.Type, Expected: "smallint, integer, bigint, text, character varying or uuid"}
	}
	if !catalog.Table(p.Key.Table).IsUnique([]string{p.Key.Column}) {
		return nil, &shards.FieldError{Field: "key", Found: p.Key.String() + ", which is not unique", Expected: "a primary key, or a column with a unique index"}
	}
	for _, t := range catalog.Tables {
		p.Tables = append(p.Tables, &TablePlan{Table: t.Name, Kind: t.Kind, Rows: t.Rows, Bytes: t.Bytes})
		p.Bytes += t.Bytes
	}
	if err := p.decide(cfg.File); err != nil {
		return nil, err
	}
	p.classify()
	return p, nil
}
