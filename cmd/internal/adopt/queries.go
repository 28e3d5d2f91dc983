package adopt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/queries"
)

// queriesResult is the JSON output of kiloshard adopt queries.
type queriesResult struct {
	Source     string              `json:"source"`
	Hidden     int64               `json:"hidden"` // statements of other roles, which this one may not read
	Classes    []queries.Summary   `json:"classes"`
	Statements []queries.Statement `json:"statements"` // the worst first
}

func queriesCommand(a *cli.App) *cobra.Command {
	var (
		from database
		log  string
		most int
	)
	cmd := &cobra.Command{
		Use:   "queries",
		Short: "Says where each statement of a service goes, the worst first",
		Long: `Reads the statements of a service from pg_stat_statements, or from a log file of the server (csvlog, jsonlog or
stderr, with log_min_duration_statement = 0), and says of each where it goes once the tables are in shards: to one shard
by the key, to one after a lookup, to several, across shards, or that it needs a change. The decisions are those of
adopt.yaml, the file of adopt plan. With calls and time, the worst first.

A log also shows transactions that have several keys. Values are left out of all output. It writes nothing to the database.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 0 {
				return cli.Usagef("--most %d: expected 0 or more", most)
			}
			cfg, err := from.config(a)
			if err != nil {
				return err
			}
			var in io.Reader
			result := queriesResult{Source: "pg_stat_statements"}
			if log != "" {
				file, err := os.Open(log)
				if err != nil {
					return cli.Usage(fmt.Errorf("--log: %w", err))
				}
				defer file.Close()
				in, result.Source = file, log
			}
			var schema *queries.Schema
			var name string
			_, err = adopt.Read(cmd.Context(), cfg, func(ctx context.Context, tx pgx.Tx, plan *adopt.Plan) error {
				if schema, err = queries.Read(ctx, tx, plan); err != nil {
					return err
				}
				if in == nil {
					result.Statements, result.Hidden, err = queries.ReadStatistics(ctx, tx)
					return err
				}
				return tx.QueryRow(ctx, "select current_database()::text").Scan(&name)
			})
			if errors.Is(err, queries.ErrNoStatistics) {
				return cli.Usagef("%w; or read a log file by --log", err)
			}
			if err == nil && in == nil {
				err = schema.Classify(cmd.Context(), result.Statements)
			} else if err == nil {
				result.Statements, err = ofLog(cmd.Context(), in, name, schema)
			}
			if err != nil {
				return err
			}
			queries.Sort(result.Statements)
			result.Statements = append([]queries.Statement{}, result.Statements...)
			result.Classes = queries.Summarize(result.Statements)
			if err := writeReport(from.report, queries.Page(result.Statements, result.facts(), 0)); err != nil {
				return err
			}
			return a.Print(result, func() { say(a, queries.Page(result.Statements, result.facts(), most)) })
		},
	}
	from.flags(cmd, "write all statements to an HTML file, too")
	cmd.Flags().StringVar(&log, "log", "", "read a log file of the server instead of pg_stat_statements")
	cmd.Flags().IntVar(&most, "most", 20, "how many statements of each class are printed; 0 for all")
	return cmd
}

// ofLog returns the statements of a log.
func ofLog(ctx context.Context, in io.Reader, database string, schema *queries.Schema) ([]queries.Statement, error) {
	collector := queries.NewCollector(schema)
	err := queries.ReadLog(in, database, func(e queries.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return collector.Add(e)
	})
	return collector.Statements(), err
}

// facts say what was read.
func (r queriesResult) facts() []string {
	facts := []string{fmt.Sprintf("%s, from %s", cli.Count(len(r.Statements), "statement"), r.Source)}
	if r.Hidden > 0 {
		facts = append(facts, fmt.Sprintf("%s of other roles cannot be read: grant pg_read_all_stats", cli.Thousands(int(r.Hidden))))
	}
	return facts
}
