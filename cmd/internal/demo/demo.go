// Package demo is kiloshard-lab demo: the whole story on throw-away hosts.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

//go:embed migrations/*.sql
var demoFiles embed.FS

// Command is kiloshard-lab demo, of the program with this root.
func Command(a *cli.App, lab program.Root) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Shows the whole story on throw-away local hosts, start to end",
		Long: `The whole story on throw-away local hosts, start to end, in under a minute. It cleans up
after itself. With KEEP=1 in the environment the hosts stay, and it prints how to reach
them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Output != "table" {
				return cli.Usagef("demo is for people: expected no -o")
			}
			d := &Story{App: a, lab: lab, keep: os.Getenv("KEEP") == "1", Shards: 1024, Users: 10_000, Started: time.Now()}
			err := d.run(cmd.Context())
			return errors.Join(err, d.CleanUp(cmd.Context()))
		},
	}
}

// Story tells the story, step by step.
type Story struct {
	*cli.App
	lab     program.Root
	keep    bool
	Shards  int
	Users   int
	Started time.Time
	Step    int

	Hosts  *Hosts
	dir    string // of config and migrations
	config string // file name
	lookup func(name string) (string, bool)
}

func (d *Story) run(ctx context.Context) error {
	for _, step := range append(d.Steps(), d.measure) {
		if err := step(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Steps are the story but for its last one, which measures.
func (d *Story) Steps() []func(context.Context) error {
	return []func(context.Context) error{d.startHosts, d.writeConfig, d.createShards, d.runMigrations, d.useRouter, d.check}
}

// tell starts a step: its title, and what it does in plain sentences.
func (d *Story) tell(title, text string) {
	d.Step++
	fmt.Fprintf(d.Stdout, "\n%d. %s\n\n%s\n\n", d.Step, title, indent(text, "   "))
}

// kiloshard shows a command line of kiloshard and runs it with the demo's config.
func (d *Story) kiloshard(ctx context.Context, args ...string) error {
	fmt.Fprintf(d.Stdout, "   $ kiloshard %s\n", strings.Join(args, " "))
	return d.runs(ctx, program.Kiloshard, append(args, "-c", d.config))
}

// runs runs a command line of a program and indents its output.
func (d *Story) runs(ctx context.Context, root program.Root, args []string) error {
	inner := &cli.App{Stdin: d.Stdin, Stdout: &indented{out: d.Stdout}, Stderr: d.Stderr, Lookup: d.lookup}
	if code := program.Run(ctx, inner, root, args); code != cli.ExitDone {
		return cli.ErrSilent
	}
	return nil
}

func (d *Story) startHosts(ctx context.Context) (err error) {
	d.tell("Two hosts", "Two Postgres servers on this machine, thrown away afterwards, stand for two physical\nhosts. In production each is a primary with its replicas.")
	d.Hosts, err = startHosts(ctx, d.keep)
	if err != nil {
		return err
	}
	for i, s := range d.Hosts.servers {
		fmt.Fprintf(d.Stdout, "   %s: %s\n", d.Hosts.names[i], s.Describe())
	}
	return nil
}

func (d *Story) writeConfig(context.Context) error {
	var err error
	if d.dir, err = os.MkdirTemp("", "kiloshard-demo-"); err != nil {
		return err
	}
	d.config = filepath.Join(d.dir, "kiloshard.yaml")
	d.lookup = d.Hosts.lookup
	text := demoConfig(d.Shards, d.Started)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.CopyFS(d.dir, demoFiles); err != nil {
		return err
	}
	d.tell("The map", "kiloshard.yaml says how many shards there are and on which host each one lives. For a\nproject of your own, kiloshard init writes a commented one. This is the demo's:")
	fmt.Fprintln(d.Stdout, indent(text, "   | "))
	return nil
}

func demoConfig(n int, now time.Time) string {
	return fmt.Sprintf(`cluster: photos
shards: %d
epoch: %s
hosts:
  - {name: pg-a, dsn: "${PG_A_DSN}"}
  - {name: pg-b, dsn: "${PG_B_DSN}"}
placement:
  - {shards: 0-%d, host: pg-a}
  - {shards: %d-%d, host: pg-b}
migrations: ./migrations`, n, now.UTC().AddDate(0, -6, 0).Format("2006-01-02T00:00:00Z"), n/2-1, n/2, n-1)
}

func (d *Story) createShards(ctx context.Context) error {
	d.tell("1,024 shards", "Each shard is a Postgres schema with a next_id() of its own. They are created on both\nhosts at once; a second run finds nothing to do.")
	return d.kiloshard(ctx, "create")
}

func (d *Story) runMigrations(ctx context.Context) error {
	d.tell("Tables", "Three tern migrations of a small photo service run in every shard: users, photos and\nlikes, with a foreign key and an index inside the shard. They name tables without a schema:")
	text, err := demoFiles.ReadFile("migrations/002_create_photos.sql")
	if err != nil {
		return err
	}
	up, _, _ := strings.Cut(string(text), "\n---- create above")
	fmt.Fprintln(d.Stdout, indent(strings.TrimSpace(up), "   | ")+"\n")
	if err := d.kiloshard(ctx, "migrate", "up"); err != nil {
		return err
	}
	fmt.Fprintln(d.Stdout)
	return d.kiloshard(ctx, "migrate", "status")
}

func (d *Story) useRouter(ctx context.Context) error {
	cfg, err := shards.Load(d.config, d.lookup)
	if err != nil {
		return err
	}
	m, err := cfg.Map()
	if err != nil {
		return err
	}
	r, err := router.New(ctx, router.Config{
		Map: m,
		// Few connections that keep the statements of all their shards: each shard is used a few times only.
		Statements: 4 * m.Len(),
		Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
			cfg.MaxConns = 2
			return nil
		},
	})
	if err != nil {
		return err
	}
	defer r.Close()
	load := &demoLoad{router: r, users: d.Users, photosEach: 3, workers: 16}

	d.tell("10,000 users", `The router takes a user to shard and host: the user's number modulo 1,024. A Go service
writes to it as to any pgx pool; every insert into photos calls its shard's next_id():`)
	fmt.Fprintln(d.Stdout, indent(demoProgram, "   | ")+"\n")
	if err := d.kiloshard(ctx, "route", "31341"); err != nil {
		return err
	}
	if err := load.write(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.Stdout, "\n   wrote %s\n", load.wrote)

	d.tell("Read back", "An ID names its shard, so a photo is found by its ID alone; and by its user, on the user's shard.")
	if err := load.readByID(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.Stdout, "   read %s: each was its user's\n", load.readIDs)
	if err := load.readByUser(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.Stdout, "   read %s: each had the photos that were written\n", load.readUsers)

	id := load.photos[len(load.photos)-1][0]
	d.tell("An ID taken apart", "A photo's ID holds when and where it was made:")
	return d.kiloshard(ctx, "id", "decode", fmt.Sprint(id))
}

const demoProgram = `shard, err := r.ForKey(ctx, shards.NumberKey(user))
err = shard.QueryRow(ctx,
    "insert into photos (user_id, title) values ($1, $2) returning id", user, title).Scan(&id)

shard, err = r.ForID(id)`

func (d *Story) check(ctx context.Context) error {
	d.tell("Check", "verify compares every shard on every host with the map; status looks at the whole cluster.")
	if err := d.kiloshard(ctx, "verify"); err != nil {
		return err
	}
	fmt.Fprintln(d.Stdout)
	return d.kiloshard(ctx, "status")
}

func (d *Story) measure(ctx context.Context) error {
	d.tell("How fast", "IDs made in every way, on one server, taking turns, for two seconds, and tables filled with them;\nlonger runs and larger tables tell more.")
	args := []string{"bench", "ids", "--duration", "2s", "--rows", "250000"}
	fmt.Fprintf(d.Stdout, "   $ kiloshard-lab %s\n", strings.Join(args, " "))
	return d.runs(ctx, d.lab, args)
}

// CleanUp stops the hosts and removes the files, or says how to reach what is kept.
func (d *Story) CleanUp(ctx context.Context) error {
	if d.Hosts == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if d.keep && d.dir != "" {
		if err := d.Hosts.writeAccess(d.dir); err != nil {
			return err
		}
		fmt.Fprintf(d.Stdout, "\nKept, with everything in %s. To reach it:\n\n", d.dir)
		fmt.Fprintf(d.Stdout, "   . %s\n   psql service=pg-a\n   kiloshard -c %s status\n", filepath.Join(d.dir, "env"), d.config)
		fmt.Fprintf(d.Stdout, "\nTo be rid of it: %s\n", d.Hosts.endCommand(d.dir))
		return d.Hosts.stop(ctx)
	}
	err := d.Hosts.stop(ctx)
	if d.dir != "" {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	fmt.Fprintf(d.Stdout, "\nBoth hosts are stopped and removed, after %s in all. KEEP=1 would keep them.\n", time.Since(d.Started).Round(100*time.Millisecond))
	return err
}

// indent puts a prefix before every line.
func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}

// indented indents what is written to it, line by line.
type indented struct {
	out    io.Writer
	inLine bool
}

func (w *indented) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if !w.inLine {
			line = "   " + line
		}
		w.inLine = !strings.HasSuffix(line, "\n")
		if _, err := io.WriteString(w.out, line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
