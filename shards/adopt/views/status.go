package views

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// StatusConfig configures [Status].
type StatusConfig struct {
	Map  *shards.Map
	Rows bool // count the rows without a shard
}

// State is the result of [Status].
type State struct {
	Gate      ledger.Gate       `json:"gate"`
	Started   time.Time         `json:"started"`
	Shards    int               `json:"shard_count"`
	Views     shards.Set        `json:"views"`   // shards whose rows are in the old tables
	Missing   shards.Set        `json:"missing"` // of these, shards that still lack views
	Copying   shards.Set        `json:"copying"` // shards whose rows are being copied
	Tables    shards.Set        `json:"tables"`  // shards with tables of their own
	OldWrites []ledger.OldWrite `json:"old_writes"`
	Changes   []string          `json:"changes"` // of the structure of the old tables, since views were made
	Keyless   []Keyless         `json:"keyless"` // tables with rows that are in no shard; without them unless Rows
	History   []ledger.Event    `json:"history"`
}

// Keyless is a table with rows that have no key, and so are in no shard.
type Keyless struct {
	Table tables.Name `json:"table"`
	Rows  int64       `json:"rows"`
}

// Status reports how far an adoption is, and which roles still write without a shard's path. It changes nothing but old records of such
// writes. With Rows it reads the tables that can have rows without a key once. The error is [ledger.ErrNone] if nobody adopts the database.
func Status(ctx context.Context, cfg StatusConfig) (*State, error) {
	host, err := Host(cfg.Map)
	if err != nil {
		return nil, err
	}
	conn, err := ledger.Open(ctx, host)
	if err != nil {
		return nil, err
	}
	defer ledger.Close(ctx, conn)
	s := &State{OldWrites: []ledger.OldWrite{}, Changes: []string{}, Keyless: []Keyless{}, History: []ledger.Event{}}
	var file string
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error {
		state, err := ledger.ReadIn(ctx, tx)
		if err != nil {
			return err
		}
		file = state.File
		return s.read(ctx, tx, state)
	})
	if err != nil || !cfg.Rows {
		return s, connect.NameHolders(ctx, conn.PgConn(), err)
	}
	return s, s.countKeyless(ctx, host, file)
}

func (s *State) read(ctx context.Context, tx pgx.Tx, state *ledger.State) error {
	s.Gate, s.Started, s.Shards = state.Gate, state.Started, state.Shards
	s.Views, s.Copying, s.Tables = state.At(ledger.StageViews), state.At(ledger.StageCopying), state.At(ledger.StageTables)
	var missing []shards.Number
	for _, one := range state.All {
		if one.Stage == ledger.StageViews && one.Views == "" {
			missing = append(missing, one.Shard)
		}
	}
	s.Missing = shards.SetOf(missing...)
	old, err := ledger.OldWrites(ctx, tx)
	if err != nil {
		return err
	}
	s.OldWrites = append(s.OldWrites, old...)
	history, err := ledger.History(ctx, tx)
	if err != nil {
		return err
	}
	s.History = append(s.History, history...)
	if state.Gate == ledger.GateFinished { // the old tables are out of the way
		return nil
	}
	catalog, err := tables.Read(ctx, tx)
	if err != nil {
		return err
	}
	all := names(catalog)
	if state.Gate != ledger.GateViews { // from then on the ledger has sharded tables only
		all = slices.DeleteFunc(all, func(name tables.Name) bool { return !ledger.Has(state.Structure, name) })
	}
	now, err := ledger.Structure(ctx, tx, all)
	if err != nil {
		return err
	}
	s.Changes = append(s.Changes, ledger.Changes(state.Structure, now)...)
	return nil
}

// countKeyless counts rows without a key, of the tables that can have some as their constraints are.
func (s *State) countKeyless(ctx context.Context, host shards.Host, text string) error {
	file, err := adopt.ParseFile("adopt.yaml", []byte(text))
	if err != nil {
		return err
	}
	_, err = adopt.Read(ctx, adopt.Config{Host: host, File: file}, func(ctx context.Context, tx pgx.Tx, p *adopt.Plan) error {
		for _, t := range p.Tables {
			if !t.Is.Sharded() || !canLackKey(t.Way()) {
				continue
			}
			joins, key := t.Way().Joins("t", "k")
			k := Keyless{Table: t.Table}
			query := fmt.Sprintf("select count(*) from %s t%s where %s is null", p.Catalog().Table(t.Table).From(), joins, key)
			if err := tx.QueryRow(ctx, query).Scan(&k.Rows); err != nil {
				return fmt.Errorf("%s: %w", t.Table, err)
			}
			if k.Rows > 0 {
				s.Keyless = append(s.Keyless, k)
			}
		}
		return nil
	})
	return err
}

// canLackKey reports whether a row can reach no key: something on its way can be null, or no constraint has checked it.
func canLackKey(r tables.Route) bool {
	for _, link := range r.Links {
		if !link.Declared || !link.Valid {
			return true
		}
	}
	return r.CanBeNull()
}
