// Package query has the commands by which one reaches shards: route, psql and exec.
package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// execResult is the JSON output of kiloshard exec.
type execResult struct {
	Done         shards.Set        `json:"done"`
	Rows         []execRow         `json:"rows"`     // by shard, as they came
	Affected     int64             `json:"affected"` // rows, by all statements together
	Failed       []cli.FailedShard `json:"failed"`
	NotAttempted shards.Set        `json:"not_attempted"`
	Seconds      float64           `json:"seconds"`
}

// execRow is a row that a shard gave.
type execRow struct {
	Shard   shards.Number `json:"shard"`
	Columns []string      `json:"columns"`
	Values  []*string     `json:"values"` // as Postgres writes them; null for NULL
}

// execution is one run of kiloshard exec.
type execution struct {
	m        *shards.Map
	sql      string
	readOnly bool
	timeout  time.Duration

	mu       sync.Mutex // guards what follows
	rows     map[shards.Number][]execRow
	affected int64
}

// ExecCommand is kiloshard exec.
func ExecCommand(a *cli.App) *cobra.Command {
	e := &execution{rows: map[shards.Number][]execRow{}}
	var narrowed string
	var all bool
	var parallel int
	cmd := &cobra.Command{
		Use:   "exec SQL --shards LIST",
		Short: "Runs SQL in shards, a transaction in each",
		Long: `Runs SQL in each of the shards, with the shard's search_path: a transaction in each, several of each host at a
time. A failure is rolled back in its shard, and the others go on. Rows are printed after the number of their
shard. When a host does not answer, SQL runs nowhere, or with --read-only on the other hosts. Changes of tables
belong in a migration: the ledger does not record this SQL. A shard where a migration or a move is at work is not
touched, except with --read-only.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (narrowed != "") {
				return cli.Usagef("exec: expected either --shards or --all")
			}
			if parallel < 1 || e.timeout < 0 {
				return cli.Usagef("--parallel: expected 1 or more; --statement-timeout 0 or more")
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			set, err := cli.ParseShards(m, narrowed)
			if err != nil {
				return err
			}
			if all {
				set = m.All()
			}
			e.m, e.sql = m, args[0]
			plan := fanout.Plan(m, set)
			hosts := make([]shards.Host, len(plan))
			for i, work := range plan {
				hosts[i] = work.Host
			}
			a.Audit(cmd.Context(), hosts, []string{shownSQL(e.sql)})
			began := time.Now()
			done, err := fanout.Run(cmd.Context(), fanout.Config[*pgconn.PgConn]{
				Map: m, Open: e.open, Reachable: e.readOnly, PerHost: parallel, Progress: a.Progress("exec"),
				Close: func(ctx context.Context, conn *pgconn.PgConn) { _ = conn.Close(ctx) },
				Alive: func(conn *pgconn.PgConn) bool { return !conn.IsClosed() },
				Do: func(ctx context.Context, conn *pgconn.PgConn, batch []shards.Number) []error {
					return []error{e.run(ctx, conn, batch[0])}
				},
			}, plan)
			return printExec(a, e, done, err, time.Since(began))
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "which shards, such as 0-9,77")
	cmd.Flags().BoolVar(&all, "all", false, "all shards")
	cmd.Flags().BoolVar(&e.readOnly, "read-only", false, "refuse SQL that writes")
	cmd.Flags().DurationVar(&e.timeout, "statement-timeout", 0, "how long a statement may take (default the server's setting)")
	cmd.Flags().IntVar(&parallel, "parallel", cli.DefaultParallel, cli.ParallelUsage)
	return cmd
}

// open opens a session outside whose transactions no table is found, and whose statements, once cancelled here, are
// cancelled on the server, which is waited for.
func (e *execution) open(ctx context.Context, host shards.Host) (*pgconn.PgConn, error) {
	return connect.OpenPlain(ctx, host, func(cfg *pgconn.Config) {
		cfg.RuntimeParams["application_name"] = "kiloshard exec"
		cfg.RuntimeParams["search_path"] = "pg_catalog"
		if e.readOnly { // for what comes behind a COMMIT in the SQL too
			cfg.RuntimeParams["default_transaction_read_only"] = "on"
		}
		cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 5 * time.Second}
		}
	})
}

// errShardLocked says that a migration or a move has the shard to itself.
var errShardLocked = errors.New("a migration or a move is at work in the shard: run it again afterwards; SQL with --read-only does not wait for them")

var errEndedTransaction = errors.New("the SQL ended its own transaction: what it did before that stays, and nothing after it was run in the shard; expected none of BEGIN, COMMIT and ROLLBACK in it")

// run runs the SQL in one shard.
func (e *execution) run(ctx context.Context, conn *pgconn.PgConn, n shards.Number) error {
	begin := "begin isolation level read committed read write"
	if e.readOnly {
		begin = "begin isolation level read committed read only"
	}
	// What the SQL of another shard has left on the session goes first.
	begin += "; reset session authorization; reset all; " + connect.CheckRole + fmt.Sprintf("; discard temp; close all; unlisten *; select '%s'::regnamespace; set local search_path = %s", e.m.Schema(n), e.m.SearchPath(n))
	if e.timeout > 0 {
		begin += fmt.Sprintf("; set local statement_timeout = %d", max(1, e.timeout.Milliseconds()))
	}
	if !e.readOnly { // several of these get along with each other
		begin += "; " + sql.ShardTurn{Shard: int(n), Schema: e.m.Schema(n), Beside: true}.Try()
	}
	began, err := conn.Exec(ctx, begin).ReadAll()
	if err != nil {
		return e.undo(ctx, conn, err)
	}
	if last := began[len(began)-1]; !e.readOnly && string(last.Rows[0][0]) != "true" {
		return e.undo(ctx, conn, errShardLocked)
	}
	results, err := conn.Exec(ctx, e.sql).ReadAll()
	if err != nil {
		return e.undo(ctx, conn, err)
	}
	if conn.TxStatus() != 'T' {
		return e.undo(ctx, conn, errEndedTransaction)
	}
	if _, err := conn.Exec(ctx, "commit").ReadAll(); err != nil {
		return e.undo(ctx, conn, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, result := range results {
		e.keep(n, result)
	}
	return nil
}

// undo ends the transaction, or the session where that is not possible, and returns the error.
func (e *execution) undo(ctx context.Context, conn *pgconn.PgConn, err error) error {
	if !conn.IsClosed() {
		if _, undone := conn.Exec(ctx, "rollback; reset all; "+connect.CheckRole).ReadAll(); undone != nil {
			_ = conn.Close(ctx)
		}
	}
	return err
}

// keep stores the result of one statement.
func (e *execution) keep(n shards.Number, result *pgconn.Result) {
	if len(result.FieldDescriptions) == 0 {
		e.affected += result.CommandTag.RowsAffected()
		return
	}
	var columns []string
	for _, field := range result.FieldDescriptions {
		columns = append(columns, field.Name)
	}
	for _, values := range result.Rows {
		row := execRow{Shard: n, Columns: columns, Values: make([]*string, len(values))}
		for i, value := range values {
			if value != nil {
				text := string(value)
				row.Values[i] = &text
			}
		}
		e.rows[n] = append(e.rows[n], row)
	}
}

func printExec(a *cli.App, e *execution, done shards.Set, err error, took time.Duration) error {
	result := execResult{Done: done, Rows: []execRow{}, Affected: e.affected, Failed: []cli.FailedShard{}, Seconds: took.Seconds()}
	for n := range done.All() {
		result.Rows = append(result.Rows, e.rows[n]...)
	}
	var partial *shards.PartialError
	if errors.As(err, &partial) {
		result.Failed, result.NotAttempted = cli.Failures(partial), partial.NotAttempted
		err = cli.Told(partial)
	}
	err = errors.Join(a.Print(result, func() {
		printExecRows(a, result.Rows)
		a.Say("%s done, %s returned, %s changed, %s, in %s", cli.Count(done.Len(), "shard"), cli.Count(len(result.Rows), "row"),
			cli.Thousands(int(e.affected)), cli.Left(partial), took.Round(time.Millisecond))
	}), err)
	if partial != nil {
		a.PrintFailures(e.m, partial)
	}
	return err
}

// printExecRows prints rows in a table for each list of columns.
func printExecRows(a *cli.App, rows []execRow) {
	for len(rows) > 0 {
		table := [][]string{append([]string{">SHARD"}, rows[0].Columns...)}
		head := strings.Join(rows[0].Columns, "\x00")
		for len(rows) > 0 && strings.Join(rows[0].Columns, "\x00") == head {
			line := []string{fmt.Sprint(rows[0].Shard)}
			for _, value := range rows[0].Values {
				text := ""
				if value != nil {
					text = cli.OneLine(*value)
				}
				line = append(line, text)
			}
			table, rows = append(table, line), rows[1:]
		}
		a.Table(table)
	}
}
