package rows

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
)

// Result is what the ledger says after a command.
type Result struct {
	Gate   ledger.Gate `json:"gate"`
	Tables shards.Set  `json:"tables"` // shards that have tables of their own
	Rest   shards.Set  `json:"rest"`   // the others
}

// Tables moves the rows of shards into tables of their own. Clients go on. It can be run again after an error, or when it was killed, and goes
// on from there. The error is a [CheckError] if nothing has moved, and a [DifferenceError] if rows differ.
func Tables(ctx context.Context, cfg Config) (Result, error) {
	return work(ctx, cfg, (*job).tables)
}

// work calls one of a job's methods, and returns what the ledger says afterwards, also after an error.
func work(ctx context.Context, cfg Config, method func(*job, context.Context) error) (Result, error) {
	j, err := open(ctx, cfg)
	if err != nil {
		return Result{}, err
	}
	defer j.close(ctx)
	err = method(j, ctx)
	result, resultErr := j.result(ctx)
	if err == nil {
		err = resultErr
	}
	return result, err
}

// result reads what the ledger says, also when ctx has ended.
func (j *job) result(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	conn, err := ledger.Open(ctx, j.host)
	if err != nil {
		return Result{}, err
	}
	defer ledger.Close(ctx, conn)
	state, err := ledger.Read(ctx, conn)
	if err != nil {
		return Result{}, err
	}
	return Result{state.Gate, state.At(ledger.StageTables), state.At(ledger.StageViews).Union(state.At(ledger.StageCopying))}, nil
}

func (j *job) tables(ctx context.Context) error {
	if j.state.Gate == ledger.GateFinished {
		return &CheckError{Problems: []string{"this adoption is finished"}}
	}
	if err := j.readStructure(ctx); err != nil {
		return err
	}
	if err := j.check(ctx); err != nil {
		return err
	}
	if err := j.closeTables(ctx); err != nil {
		return err
	}
	var todo []shards.Number
	for n := range j.cfg.Shards.All() {
		if j.stageOf(n) != ledger.StageTables {
			todo = append(todo, n)
		}
	}
	// Those of a command that was killed come first.
	slices.SortStableFunc(todo, func(a, b shards.Number) int { return order(j.stageOf(a)) - order(j.stageOf(b)) })
	for group := range slices.Chunk(todo, j.cfg.Group) {
		if err := j.moveGroup(ctx, group); err != nil {
			return err
		}
	}
	if err := j.validateAll(ctx); err != nil {
		return err
	}
	return j.passGate(ctx)
}

func (j *job) stageOf(n shards.Number) ledger.Stage {
	i := slices.IndexFunc(j.state.All, func(s ledger.Shard) bool { return s.Shard == n })
	return j.state.All[i].Stage
}

func order(s ledger.Stage) int {
	if s == ledger.StageCopying {
		return 0
	}
	return 1
}

// moveGroup moves the rows of some shards.
func (j *job) moveGroup(ctx context.Context, group []shards.Number) error {
	set := shards.SetOf(group...)
	fresh := slices.DeleteFunc(slices.Clone(group), func(n shards.Number) bool { return j.stageOf(n) == ledger.StageCopying })
	err := each(ctx, j, fresh, func(ctx context.Context, conn *pgx.Conn, n shards.Number) error { return j.makeHidden(ctx, conn, n) })
	if err != nil {
		return err
	}
	if err := j.startCopying(ctx, fresh); err != nil {
		return err
	}
	if err := j.awaitOlder(ctx, set, "copy"); err != nil {
		return err
	}
	err = each(ctx, j, j.set.Tables, func(ctx context.Context, conn *pgx.Conn, t *structure.Table) error {
		return j.copyTable(ctx, conn, t, group)
	})
	if err != nil {
		return err
	}
	// No snapshot may see a part of the copy once it can see the tables.
	if err := j.awaitOlder(ctx, set, "comparison"); err != nil {
		return err
	}
	err = each(ctx, j, j.set.Tables, func(ctx context.Context, conn *pgx.Conn, t *structure.Table) error {
		return j.compareTable(ctx, conn, t, set, mirror.Hidden)
	})
	if err != nil {
		return err
	}
	return each(ctx, j, group, func(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
		if err := j.cutOver(ctx, conn, n); err != nil {
			return err
		}
		return j.validate(ctx, conn, n)
	})
}

// validateAll checks foreign keys that a command was killed before.
func (j *job) validateAll(ctx context.Context) error {
	const query = `select distinct n.nspname::text from pg_constraint k join pg_namespace n on n.oid = k.connamespace where k.contype = 'f' and not k.convalidated`
	schemas, err := texts(ctx, j.conn, query)
	if err != nil {
		return err
	}
	for n := range j.cfg.Shards.All() {
		if slices.Contains(schemas, j.cfg.Map.Schema(n)) {
			if err := j.validate(ctx, j.conn, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// passGate notes that all shards have tables.
func (j *job) passGate(ctx context.Context) error {
	return j.inTx(ctx, j.conn, func(tx pgx.Tx) error {
		state, err := ledger.ReadIn(ctx, tx)
		if err != nil {
			return err
		}
		if state.Gate == ledger.GateClosed && state.At(ledger.StageTables).Len() == state.Shards {
			return ledger.SetGate(ctx, tx, ledger.GateClosed, ledger.GateTables)
		}
		return nil
	})
}
