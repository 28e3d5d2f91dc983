package rows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/mirror"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// job is one command's work.
type job struct {
	cfg    Config
	host   shards.Host
	lock   *ledger.Lock
	conn   *pgx.Conn
	state  *ledger.State
	plan   *adopt.Plan
	set    *structure.Set
	writer mirror.Writer

	reporting sync.Mutex
}

// open takes the lock of the adoption, and reads the ledger. Call [job.close].
func open(ctx context.Context, cfg Config) (j *job, err error) {
	j = &job{cfg: cfg.withDefaults()}
	if j.host, err = views.Host(cfg.Map); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			j.close(ctx)
			j = nil
		}
	}()
	if j.lock, err = ledger.Acquire(ctx, j.host); err != nil {
		return j, err
	}
	if j.conn, err = ledger.Open(ctx, j.host); err != nil {
		return j, err
	}
	return j, j.readLedger(ctx)
}

func (j *job) close(ctx context.Context) {
	ledger.Close(ctx, j.conn)
	if j.lock != nil {
		j.lock.Release(ctx)
	}
}

// read reads the ledger and the structure.
func (j *job) read(ctx context.Context) error {
	if err := j.readLedger(ctx); err != nil {
		return err
	}
	return j.readStructure(ctx)
}

func (j *job) readLedger(ctx context.Context) (err error) {
	if j.state, err = ledger.Read(ctx, j.conn); err != nil {
		return err
	}
	if j.state.Shards != j.cfg.Map.Len() {
		return &shards.FieldError{Field: "shards", Found: fmt.Sprint(j.cfg.Map.Len()), Expected: fmt.Sprintf("%d, as adopt views has made", j.state.Shards)}
	}
	return nil
}

// readStructure reads the plan and the sharded tables. Foreign keys and triggers are as they were before the old tables were closed.
func (j *job) readStructure(ctx context.Context) error {
	file, err := adopt.ParseFile("adopt.yaml", []byte(j.state.File))
	if err != nil {
		return err
	}
	remembered, err := j.recall(ctx)
	if err != nil {
		return err
	}
	if remembered != nil { // the old tables may be without these foreign keys
		for i := range file.Tables {
			file.Tables[i].Crosses = nil
		}
	}
	read := func(ctx context.Context, tx pgx.Tx, plan *adopt.Plan) (err error) {
		j.plan = plan
		j.set, err = structure.Read(ctx, tx, plan, file)
		return err
	}
	if _, err := adopt.Read(ctx, adopt.Config{Host: j.host, File: file}, read); err != nil {
		return err
	}
	for _, t := range j.set.Tables {
		if was, ok := remembered[t.Name.String()]; ok {
			t.Links, t.Triggers = was.Links, was.Triggers
		}
	}
	j.writer = mirror.Writer{
		Set: j.set, Shard: func(key string) string { return j.plan.Strategy.Shard(key, j.state.Shards) }, OldWay: ledger.OldWay(j.cfg.Map),
	}
	return j.fit(ctx)
}

// fit lowers how many shards are worked on together, so that their tables need half of the server's lock table at most: once it is full, the
// statements of clients fail, too.
func (j *job) fit(ctx context.Context) error {
	const query = `select (current_setting('max_locks_per_transaction')::bigint * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint) / 2)::int`
	var slots int
	if err := j.conn.QueryRow(ctx, query).Scan(&slots); err != nil {
		return err
	}
	all, most := 1, 1 // of a shard, and of its largest table, with indexes and TOAST
	for _, t := range j.set.Tables {
		one := 3 + len(t.Constraints) + len(t.Indexes)
		all, most = all+one, max(most, one)
	}
	j.cfg.Parallel = max(1, min(j.cfg.Parallel, slots/all))
	j.cfg.Group = max(1, min(j.cfg.Group, slots/j.cfg.Parallel/(2*most))) // a foreign key has two tables
	return nil
}

// report reports one event at a time.
func (j *job) report(e Event) {
	if j.cfg.Report != nil {
		j.reporting.Lock()
		defer j.reporting.Unlock()
		j.cfg.Report(e)
	}
}

// inTx calls fn in a transaction of the adoption: it fails if the lock is lost, and waits as long as the session waits for locks.
func (j *job) inTx(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return j.lock.Check(ctx, tx)
	})
	return connect.NameHolders(ctx, conn.PgConn(), err)
}

// run runs statements in a transaction.
func run(ctx context.Context, tx pgx.Tx, statements ...string) error {
	if len(statements) == 0 {
		return nil
	}
	_, err := tx.Conn().PgConn().Exec(ctx, strings.Join(statements, ";\n")).ReadAll()
	return err
}

// own runs statements that make functions, and gives these to the role kiloshard_adopt. The role of the session may make triggers of them.
func own(ctx context.Context, tx pgx.Tx, functions, statements []string) error {
	var me string
	if err := tx.QueryRow(ctx, `select quote_ident(current_user)`).Scan(&me); err != nil {
		return err
	}
	grants := []string{"set local role kiloshard_adopt"}
	for _, f := range functions {
		statements = append(statements, "alter function "+f+" owner to kiloshard_adopt", "revoke all on function "+f+" from public")
		grants = append(grants, fmt.Sprintf("grant execute on function %s to %s", f, me))
	}
	return ledger.Own(ctx, tx, func(tx pgx.Tx) error { return run(ctx, tx, append(append(statements, grants...), "reset role")...) })
}

// texts returns the one column of a query's rows.
func texts(ctx context.Context, q ledger.Querier, query string, args ...any) ([]string, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// isCode reports whether an error is one of the server's with one of the SQLSTATEs.
func isCode(err error, codes ...string) bool {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return false
	}
	for _, code := range codes {
		if pg.SQLState() == code {
			return true
		}
	}
	return false
}
