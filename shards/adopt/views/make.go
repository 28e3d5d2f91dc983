package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// Config configures [Make].
type Config struct {
	Map      *shards.Map // all shards on one host
	File     *adopt.File // adopt.yaml
	Text     string      // of adopt.yaml
	Sample   float64     // as in [adopt.Config]. Defaults to 100
	Counting func(table string, of, total int)
	PerHost  int             // shards at a time. Defaults to 2
	Progress fanout.Progress // Defaults to none
}

// Report is the result of [Make].
type Report struct {
	Plan *adopt.Plan `json:"-"`
	Made shards.Set  `json:"made"`
	Kept shards.Set  `json:"kept"` // their views were as the plan has them
}

// UndecidedError says that tables are undecided, so that no views were made.
type UndecidedError struct{ Tables []*adopt.TablePlan }

// Error names the tables and why they are undecided.
func (e *UndecidedError) Error() string {
	text := "tables are undecided; expected a decision about each in adopt.yaml: see kiloshard adopt plan"
	for _, t := range e.Tables {
		text += fmt.Sprintf("\n%s: %s", t.Table, t.Why)
	}
	return text
}

// GateError says that the adoption is at a gate where a command cannot work.
type GateError struct {
	Gate     ledger.Gate
	Expected string
}

// Error names the gate.
func (e *GateError) Error() string {
	return fmt.Sprintf("the adoption is at gate %s; expected %s", e.Gate, e.Expected)
}

// Make looks at the database again, and makes the views of all shards, each shard in one transaction and several at a time. It first puts a
// trigger on each old table that records writes without a shard's path; for that it waits for writers, 1 s at a time for a minute at
// most. Views that are as plan and structure have them are left alone, so Make continues one that was interrupted, and follows a change of
// adopt.yaml. When ctx ends it finishes the shards under way.
//
// The error is an [UndecidedError], a [shards.FieldError] if the plan, the map or the database does not allow it, [ledger.ErrBusy], a
// [GateError] after gate 1, or the [shards.PartialError] of [fanout.Run].
func Make(ctx context.Context, cfg Config) (Report, error) {
	host, err := Host(cfg.Map)
	if err != nil {
		return Report{}, err
	}
	lock, err := ledger.Acquire(ctx, host)
	if err != nil {
		return Report{}, err
	}
	defer lock.Release(ctx)
	conn, err := ledger.Open(ctx, host)
	if err != nil {
		return Report{}, err
	}
	defer ledger.Close(ctx, conn)
	state, err := ledger.Read(ctx, conn)
	if err != nil && !errors.Is(err, ledger.ErrNone) {
		return Report{}, err
	}
	if state != nil && !AtViews(state) {
		return Report{}, &GateError{state.Gate, "gate views, with all rows in the old tables: kiloshard adopt back goes back there"}
	}
	if state != nil && state.Shards != cfg.Map.Len() {
		return Report{}, &shards.FieldError{Field: "shards", Found: fmt.Sprint(cfg.Map.Len()), Expected: fmt.Sprintf("%d, as the adoption began", state.Shards)}
	}
	k, a, report, err := look(ctx, cfg, host)
	if err != nil {
		return report, err
	}
	if state == nil {
		if _, err = ledger.Install(ctx, conn, a); err == nil {
			state, err = ledger.Read(ctx, conn)
		}
	} else if state.File != a.File || state.Strategy != a.Strategy || state.Structure != a.Structure {
		err = ledger.SetPlan(ctx, conn, a)
	}
	if err == nil {
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error { return k.grantHelper(ctx, tx) })
	}
	if err == nil {
		err = k.record(ctx, conn)
	}
	if err != nil {
		return report, err
	}
	err = k.makeAll(ctx, cfg, conn, lock, state, &report)
	return report, err
}

// look looks at the plan again, and reads what the views need, in the same snapshot.
func look(ctx context.Context, cfg Config, host shards.Host) (*maker, ledger.Adoption, Report, error) {
	k := &maker{m: cfg.Map}
	a := ledger.Adoption{Shards: cfg.Map.Len(), File: cfg.Text}
	plan, err := adopt.Look(ctx, adopt.Config{Host: host, File: cfg.File, Sample: cfg.Sample, Progress: cfg.Counting}, func(ctx context.Context, tx pgx.Tx, p *adopt.Plan) error {
		if err := checkPlan(cfg.Map, p); err != nil {
			return err
		}
		k.strategy, a.Strategy = p.Strategy, p.Strategy.Shard("key", cfg.Map.Len())
		if err := checkShards(ctx, tx, cfg.Map); err != nil {
			return err
		}
		if err := checkIDs(ctx, tx, cfg.Map, p); err != nil {
			return err
		}
		var err error
		if k.old, err = readOld(ctx, tx, p); err != nil {
			return err
		}
		if err := checkOwners(ctx, tx, k.old); err != nil {
			return err
		}
		if err := checkSubscriptions(ctx, tx, k.old); err != nil {
			return err
		}
		a.Structure, err = ledger.Structure(ctx, tx, names(p.Catalog()))
		return err
	})
	return k, a, Report{Plan: plan}, err
}

// checkPlan returns an error for a plan that is not decided, or not of this map.
func checkPlan(m *shards.Map, p *adopt.Plan) error {
	var undecided []*adopt.TablePlan
	for _, name := range p.Undecided() {
		undecided = append(undecided, p.Table(name))
	}
	if len(undecided) > 0 {
		return &UndecidedError{undecided}
	}
	return checkStrategy(m, p.Strategy)
}

func names(c *tables.Catalog) []tables.Name {
	var all []tables.Name
	for _, t := range c.Tables {
		all = append(all, t.Name)
	}
	return all
}

// makeAll makes the views of the shards that lack them.
func (k *maker) makeAll(ctx context.Context, cfg Config, conn *pgx.Conn, lock *ledger.Lock, state *ledger.State, report *Report) error {
	complete, err := k.complete(ctx, conn)
	if err != nil {
		return err
	}
	var todo, kept []shards.Number
	for _, s := range state.All {
		if s.Views != "" && complete[cfg.Map.Schema(s.Shard)] && s.Views == fingerprint(k.views(s.Shard), k.rights()) {
			kept = append(kept, s.Shard)
		} else {
			todo = append(todo, s.Shard)
		}
	}
	report.Kept = shards.SetOf(kept...)
	if len(todo) == 0 {
		return nil
	}
	report.Made, err = eachShard(ctx, cfg, todo, func(ctx context.Context, tx pgx.Tx, n shards.Number) error {
		if err := k.makeOne(ctx, tx, n); err != nil {
			return err
		}
		return lock.Check(ctx, tx)
	})
	if report.Made.Len() > 0 {
		noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
		defer cancel()
		err = errors.Join(err, ledger.Note(noting, conn, fmt.Sprintf("views of %d shards were made", report.Made.Len())))
	}
	return err
}

// eachShard calls do in a transaction of its own for each shard.
func eachShard(ctx context.Context, cfg Config, todo []shards.Number, do func(context.Context, pgx.Tx, shards.Number) error) (shards.Set, error) {
	return fanout.Run(ctx, fanout.Config[*pgx.Conn]{
		Map:   cfg.Map,
		Open:  ledger.Open,
		Close: ledger.Close,
		Alive: func(conn *pgx.Conn) bool { return !conn.IsClosed() },
		Do: func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) []error {
			err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error { return do(ctx, tx, batch[0]) })
			return []error{connect.NameHolders(ctx, conn.PgConn(), detailed(err))}
		},
		PerHost: cfg.PerHost, Progress: cfg.Progress,
	}, fanout.Plan(cfg.Map, shards.SetOf(todo...)))
}

// makeOne makes the views of one shard.
func (k *maker) makeOne(ctx context.Context, tx pgx.Tx, n shards.Number) error {
	all, rights := k.views(n), k.rights()
	statements, err := k.remake(ctx, tx, n, all)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "set local lock_timeout = '30s';\n"+script(statements), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	if err := grantRights(ctx, tx, n, k.m.Schema(n), rights); err != nil {
		return err
	}
	return ledger.SetViews(ctx, tx, n, fingerprint(all, rights))
}

// complete returns the schemas that have as many views and trigger functions of ours as the plan has.
func (k *maker) complete(ctx context.Context, conn *pgx.Conn) (map[string]bool, error) {
	const query = `select n.nspname::text, count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'v' and n.nspname = any ($1) and obj_description(c.oid, 'pg_class') = $2 group by 1`
	rows, err := conn.Query(ctx, query, k.m.Schemas(slices.Collect(k.m.All().All())), ledger.Mark)
	if err != nil {
		return nil, err
	}
	found, want := map[string]bool{}, len(k.views(0))
	var schema string
	var count int
	_, err = pgx.ForEachRow(rows, []any{&schema, &count}, func() error {
		found[schema] = count == want
		return nil
	})
	return found, err
}

// noteLimit bounds what is written to the ledger after the caller's context has ended.
const noteLimit = 5 * time.Second

// detailed adds to an error the objects that depend on one that was to be dropped.
func detailed(err error) error {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "2BP01" {
		return fmt.Errorf("%w: %s", err, pg.Detail)
	}
	return err
}
