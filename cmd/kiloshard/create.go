package main

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// createResult is what kiloshard create prints as JSON.
type createResult struct {
	Created      shards.Set    `json:"created"`
	Existed      shards.Set    `json:"existed"`
	Failed       []failedShard `json:"failed"`
	NotAttempted shards.Set    `json:"not_attempted"`
	Generators   []string      `json:"generators"` // made in the helper schemas, such as "photo on tick-a"
	Seconds      float64       `json:"seconds"`
}

// failedShard is a shard on which something failed, as JSON has it.
type failedShard struct {
	Shard  shards.Number `json:"shard"`
	Schema string        `json:"schema"`
	Host   string        `json:"host"`
	Error  string        `json:"error"`

	// Of a migration that the server refused.
	SQLState  string `json:"sqlstate,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"` // 1-based
	Statement string `json:"statement,omitempty"`
}

func (a *app) createCommand() *cobra.Command {
	var cfg provision.CreateConfig
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Creates whatever shards the map says and hosts lack",
		Long: `Creates whatever shards and generators the map says and hosts lack, on all hosts at once. Run again,
it changes nothing; interrupted, it finishes the shards under way, and another run
goes on from there. When a host does not answer, nothing is created anywhere.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := a.loadMap(cmd.Context())
			if err != nil {
				return err
			}
			cfg.Map = m
			cfg.Progress = a.progress("create")
			start := time.Now()
			report, err := provision.Create(cmd.Context(), cfg)
			if report.Created.Len()+report.Existed.Len() == 0 && err != nil {
				return err
			}
			return errors.Join(a.printCreated(m, report, err, time.Since(start)), err)
		},
	}
	cmd.Flags().IntVar(&cfg.PerHost, "parallel", 2, "sessions at work on each host")
	cmd.Flags().IntVar(&cfg.Batch, "batch", 64, "shards in a transaction")
	return cmd
}

func (a *app) printCreated(m *shards.Map, report provision.CreateReport, err error, took time.Duration) error {
	result := createResult{Created: report.Created, Existed: report.Existed, Failed: []failedShard{}, Generators: []string{}, Seconds: took.Seconds()}
	result.Generators = append(result.Generators, report.Generators...)
	var partial *shards.PartialError
	if errors.As(err, &partial) {
		result.Failed = failures(partial)
		result.NotAttempted = partial.NotAttempted
	}
	return a.print(result, func() {
		a.say("%s created in %s, %s there already, %d failed, %d not attempted; %s on %s",
			count(report.Created.Len(), "shard"), took.Round(time.Millisecond), thousands(report.Existed.Len()),
			len(result.Failed), result.NotAttempted.Len(), count(m.Len(), "shard"), count(len(m.Hosts()), "host"))
		if len(result.Generators) > 0 {
			a.say("generators created: %s", strings.Join(result.Generators, ", "))
		}
	})
}

func failures(partial *shards.PartialError) []failedShard {
	failed := make([]failedShard, len(partial.Failed))
	for i, f := range partial.Failed {
		failed[i] = failedShard{Shard: f.Shard, Schema: f.Schema, Host: f.Host, Error: f.Err.Error()}
		if file := (*migrate.FileError)(nil); errors.As(f, &file) {
			failed[i].File, failed[i].Line, failed[i].Statement = file.File, file.Line, file.Statement
		}
		if pg := (*pgconn.PgError)(nil); errors.As(f, &pg) {
			failed[i].SQLState = pg.Code
		}
	}
	return failed
}
