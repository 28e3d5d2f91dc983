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
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// result is what kiloshard cleaner prints as JSON, when it ends and, with --every, a line for each time.
type result struct {
	entities.Stats
	Waiting int     `json:"waiting"` // writes that are not done
	Lag     float64 `json:"lag_seconds"`
	Ahead   float64 `json:"clock_ahead_seconds"` // how far a write is in the future: a clock has stepped back
	Error   string  `json:"last_error,omitempty"`
}

// command is one run of kiloshard cleaner.
type command struct {
	*cli.App
	file, index   string
	release, drop string
	watch         time.Duration
	migration     bool
	every         time.Duration
	options       entities.CleanOptions
}

// Command is kiloshard cleaner.
func Command(a *cli.App) *cobra.Command {
	c := &command{App: a}
	cmd := &cobra.Command{
		Use:   "cleaner --entities FILE [--once | --index NAME | --migration | --release NAME | --drop NAME]",
		Short: "Repairs the indexes of entities and fills new ones",
		Long: `Finishes the work of interrupted writers of package router/entities: it adds missing index rows and removes stale
ones, until it is interrupted. Besides, it compares all entities and index rows slowly, from the newest change back, with
--walk so many a second. Any number of cleaners may run. One whose definition differs from that of the shards refuses to.

--entities is the definition of the entities and their indexes, in YAML:

  shards: 2048
  indexes:
    - name: index_user_id
      properties: [{name: user_id, type: text}, {name: published, type: int}]

--index fills one index, from the newest entity back, while services run, then checks each row of it and ends. Services
that do not know the index cannot write from then on. After an interrupt, another run continues where it was. It fails if
entities have the same value in a unique index. --migration prints the tables, for a file of kiloshard migrate; with --index
those of one index.

To drop an index, run --release NAME, remove it from the definition of all services, and run --drop NAME, which fails if
a service still writes the index within --watch.`,
		Example: `  kiloshard cleaner --entities entities.yaml --every 10s -o json
  kiloshard cleaner --entities entities.yaml --index index_link --rate 5000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case count(c.options.Once, c.index != "", c.release != "", c.drop != "") > 1 || c.migration && count(c.options.Once, c.release != "", c.drop != "") > 0:
				return cli.Usagef("expected one of --once, --index, --migration, --release and --drop")
			case c.options.Workers < 1 || c.options.PerSecond < 0 || c.options.WalkPerSecond < 0 || c.every < 0 || c.watch < 0 || c.options.Interval <= 0:
				return cli.Usagef("--parallel: expected 1 or more; --rate, --walk, --watch and --every 0 or more; --interval more than 0")
			}
			if c.options.WalkPerSecond == 0 {
				c.options.WalkPerSecond = -1
			}
			return c.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&c.file, "entities", "", "the definition of the entities")
	cmd.Flags().StringVar(&c.index, "index", "", "fill this index, and end")
	cmd.Flags().BoolVar(&c.options.Once, "once", false, "look at all shards once, and end")
	cmd.Flags().BoolVar(&c.migration, "migration", false, "print the migration that creates the tables; with no hosts asked")
	cmd.Flags().IntVar(&c.options.PerSecond, "rate", 0, "entities a second at most (default no limit)")
	cmd.Flags().IntVar(&c.options.WalkPerSecond, "walk", 20, "entities and index rows a second that are compared besides; 0 for none")
	cmd.Flags().StringVar(&c.release, "release", "", "let services write that do not know this index, and end")
	cmd.Flags().StringVar(&c.drop, "drop", "", "drop this index, which the definition does not have any more, and end")
	cmd.Flags().DurationVar(&c.watch, "watch", 10*time.Second, "how long --drop looks for services that write the index")
	cmd.Flags().IntVar(&c.options.Workers, "parallel", cli.DefaultParallel, cli.ParallelUsage)
	cmd.Flags().DurationVar(&c.options.Interval, "interval", time.Second, "from one look at all shards to the next")
	cmd.Flags().DurationVar(&c.every, "every", 0, "print what was done so far, and the lag, so often")
	_ = cmd.MarkFlagRequired("entities") // fails only for a flag that is not there
	return cmd
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
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
		return c.printMigration(d)
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
	e, err := entities.Open(ctx, r, d)
	if field := new(shards.FieldError); errors.As(err, &field) {
		return cli.Usagef("--entities %s: %w", c.file, err)
	}
	if err != nil {
		return err
	}
	if c.every > 0 {
		ended := make(chan struct{})
		counting, stop := context.WithCancel(ctx)
		go func() {
			defer close(ended)
			c.report(counting, e)
		}()
		defer func() { stop(); <-ended }()
	}
	switch {
	case c.index != "":
		err = e.Fill(ctx, c.index, c.options)
	case c.release != "":
		err = e.Release(ctx, c.release)
	case c.drop != "":
		err = e.Drop(ctx, c.drop, c.watch)
	default:
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

// printMigration prints the migration of all tables, or of one index.
func (c *command) printMigration(d entities.Definition) error {
	if c.index == "" {
		fmt.Fprint(c.Stdout, d.Migration())
		return nil
	}
	for _, index := range d.Indexes {
		if index.Name == c.index {
			fmt.Fprint(c.Stdout, index.Migration())
			return nil
		}
	}
	return fmt.Errorf("%s: %w", c.index, entities.ErrNoIndex)
}

// report prints what was done, every so often, until ctx ends.
func (c *command) report(ctx context.Context, e *entities.Store) {
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
	r := result{e.Stats(), lag.Waiting, lag.Oldest.Seconds(), lag.Ahead.Seconds(), lag.Error}
	return c.Print(r, func() {
		c.Say("%d entities repaired, %d filled, %d compared, %d index rows checked, %d added, %d removed, %d taken by another entity; %d wait, the oldest for %.1f s",
			r.Repaired, r.Filled, r.Walked, r.Checked, r.Added, r.Removed, r.Taken, r.Waiting, r.Lag)
		if r.Ahead > 0 {
			c.Warn("warning: a write is %.1f s in the future: the clock of its host was ahead, or is behind now", r.Ahead)
		}
		if r.Error != "" {
			c.Warn("warning: the last error: %s", r.Error)
		}
	})
}
