// Package cleaner is kiloshard cleaner: the cleaner of package router/entities.
package cleaner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// result is what kiloshard cleaner prints as JSON, when it ends and, with --every, a line for each time.
type result struct {
	entities.Stats
	Waiting int     `json:"waiting"` // writes that are not done
	Lag     float64 `json:"lag_seconds"`
}

// command is one run of kiloshard cleaner.
type command struct {
	*cli.App
	file, index string
	migration   bool
	every       time.Duration
	options     entities.CleanOptions
}

// Command is kiloshard cleaner.
func Command(a *cli.App) *cobra.Command {
	c := &command{App: a}
	cmd := &cobra.Command{
		Use:   "cleaner --entities FILE [--once | --index NAME | --migration]",
		Short: "Repairs the indexes of entities and fills new ones",
		Long: `Finishes the work of interrupted writers of package router/entities: it adds missing index rows and removes stale
ones, until it is interrupted. Any number of cleaners may run.

--entities is the definition of the entities and their indexes, in YAML:

  shards: 2048
  indexes:
    - name: index_user_id
      properties: [{name: user_id, type: text}, {name: published, type: int}]

--index fills one index, from the newest entity back, while services run, then checks each row of it and ends. After
an interrupt, another run continues where it was. --migration prints the tables, for a file of kiloshard migrate.`,
		Example: `  kiloshard cleaner --entities entities.yaml --every 10s -o json
  kiloshard cleaner --entities entities.yaml --index index_link --rate 5000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case c.options.Once && c.index != "" || c.migration && (c.options.Once || c.index != ""):
				return cli.Usagef("expected one of --once, --index and --migration")
			case c.options.Workers < 1 || c.options.PerSecond < 0 || c.every < 0 || c.options.Interval <= 0:
				return cli.Usagef("--parallel: expected 1 or more; --rate and --every 0 or more; --interval more than 0")
			}
			return c.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&c.file, "entities", "", "the definition of the entities")
	cmd.Flags().StringVar(&c.index, "index", "", "fill this index, and end")
	cmd.Flags().BoolVar(&c.options.Once, "once", false, "look at all shards once, and end")
	cmd.Flags().BoolVar(&c.migration, "migration", false, "print the migration that creates the tables; with no hosts asked")
	cmd.Flags().IntVar(&c.options.PerSecond, "rate", 0, "entities a second at most (default no limit)")
	cmd.Flags().IntVar(&c.options.Workers, "parallel", cli.DefaultParallel, cli.ParallelUsage)
	cmd.Flags().DurationVar(&c.options.Interval, "interval", time.Second, "from one look at all shards to the next")
	cmd.Flags().DurationVar(&c.every, "every", 0, "print what was done so far, and the lag, so often")
	_ = cmd.MarkFlagRequired("entities") // fails only for a flag that is not there
	return cmd
}

func (c *command) run(ctx context.Context) (err error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return cli.Usagef("--entities: %w", err)
	}
	d, err := entities.Parse(text)
	if err != nil {
		return cli.Usagef("--entities %s: %w", c.file, err)
	}
	if c.migration {
		fmt.Fprint(c.Stdout, d.Migration())
		return nil
	}
	file, store, _, err := c.OpenMap(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r, err := router.New(ctx, router.Config{
		Maps:        mapstore.NewSource(mapstore.SourceConfig{Store: store, Cluster: file.Cluster, Lookup: c.Lookup}),
		Credentials: cli.PasswordCommand(file),
	})
	if err != nil {
		return err
	}
	defer r.Close()
	e, err := entities.Open(r, d)
	if err != nil {
		return cli.Usagef("--entities %s: %w", c.file, err)
	}
	if c.every > 0 {
		ended := make(chan struct{})
		counting, stop := context.WithCancel(ctx)
		go func() {
			defer close(ended)
			c.count(counting, e)
		}()
		defer func() { stop(); <-ended }()
	}
	if c.index != "" {
		err = e.Fill(ctx, c.index, c.options)
	} else {
		c.options.Log = func(err error) { c.Warn("warning: %v", err) }
		if c.options.Once {
			c.options.Log = nil
		}
		err = e.Clean(ctx, c.options)
	}
	if err != nil {
		return err
	}
	return c.print(context.WithoutCancel(ctx), e)
}

// count prints what was done, every so often, until ctx ends.
func (c *command) count(ctx context.Context, e *entities.Store) {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.print(ctx, e); err != nil && ctx.Err() == nil {
				c.Warn("warning: %v", err)
			}
		}
	}
}

func (c *command) print(ctx context.Context, e *entities.Store) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	lag, err := e.Lag(ctx)
	if err != nil {
		return err
	}
	r := result{e.Stats(), lag.Waiting, lag.Oldest.Seconds()}
	return c.Print(r, func() {
		c.Say("%d entities repaired, %d filled, %d index rows checked, %d added, %d removed, %d taken by another entity; %d wait, the oldest for %.1f s",
			r.Repaired, r.Filled, r.Checked, r.Added, r.Removed, r.Taken, r.Waiting, r.Lag)
	})
}
