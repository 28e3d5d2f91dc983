package migrations

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// migrateHistoryResult is the JSON output of kiloshard migrate history.
type migrateHistoryResult struct {
	Entries []ledgerEntry `json:"entries"`
}

// ledgerEntry is one file in one run.
type ledgerEntry struct {
	Run       string     `json:"run"`
	Who       string     `json:"who"`
	Role      string     `json:"role"`
	Direction string     `json:"direction"`
	Version   int32      `json:"version"`
	File      string     `json:"file"`
	Began     time.Time  `json:"began"`
	Seconds   float64    `json:"seconds"`
	Done      shards.Set `json:"done"`
	Failed    shards.Set `json:"failed"`
	Error     string     `json:"error,omitempty"`
}

func historyCommand(a *cli.App) *cobra.Command {
	var narrowed, run string
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Prints who ran which file where and when, and how it ended",
		Long: `Prints the ledgers of all hosts, the newest run first: a line for each file that a run took up or down, with
who ran it, when, how long it took, and on how many shards it was done or failed. Versions set by hand are
listed as force, and changed files that were accepted as accept.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usagef("--limit %d: expected 0 or more", limit)
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			set, err := cli.ParseShards(m, narrowed)
			if err != nil {
				return err
			}
			entries, err := migrate.History(cmd.Context(), migrate.Config{Map: m, Shards: set}, limit, run)
			all := err == nil
			if !all && len(entries) > 0 {
				err = cli.Partly(err)
			}
			return errors.Join(printMigrateHistory(a, entries, all), err)
		},
	}
	cmd.Flags().StringVar(&narrowed, "shards", "", "only these shards, such as 0-9,77")
	cmd.Flags().StringVar(&run, "run", "", "only the run of this name")
	cmd.Flags().IntVar(&limit, "limit", 20, "so many runs at most; 0 for all")
	return cmd
}

// printMigrateHistory prints the ledgers of all hosts that answered.
func printMigrateHistory(a *cli.App, entries []migrate.HistoryEntry, all bool) error {
	result := migrateHistoryResult{Entries: []ledgerEntry{}}
	rows := [][]string{{"RUN", "~WHO", "~BEGAN", ">TOOK", "", "~FILE", ">DONE", ">FAILED"}}
	for _, e := range entries {
		result.Entries = append(result.Entries, ledgerEntry{
			Run: e.Run, Who: e.Who, Role: e.Role, Direction: e.Direction, Version: e.Version, File: e.File, Began: e.Began,
			Seconds: e.Took.Seconds(), Done: e.Done, Failed: e.Failed, Error: e.Error,
		})
		file := cli.OneLine(e.File)
		if file == "" {
			file = fmt.Sprintf("version %d", e.Version)
		}
		rows = append(rows, []string{
			cli.OneLine(e.Run), cli.OneLine(e.Who), cli.Stamp(e.Began), e.Took.Round(time.Millisecond).String(), e.Direction, file,
			cli.Thousands(e.Done.Len()), cli.Thousands(e.Failed.Len()),
		})
	}
	return a.Print(result, func() {
		switch {
		case len(entries) > 0:
			a.Table(rows)
		case all:
			a.Say("the ledgers hold nothing")
		}
	})
}
