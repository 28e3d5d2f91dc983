package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

//go:embed demo/migrations/*.sql
var demoFiles embed.FS

// demoCommand takes what runs one command line of this program and returns its exit code.
func (a *app) demoCommand(execute func(ctx context.Context, a *app, args []string) int) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "The whole story on throw-away local hosts, start to end",
		Long: `The whole story on throw-away local hosts, start to end, in under a minute. It cleans up
after itself. With KEEP=1 in the environment the hosts stay, and it prints how to reach
them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.output != "table" {
				return usagef("demo is for people: expected no -o")
			}
			d := &demo{app: a, execute: execute, keep: os.Getenv("KEEP") == "1", shards: 1024, users: 10_000, started: time.Now()}
			err := d.run(cmd.Context())
			return errors.Join(err, d.cleanUp(cmd.Context()))
		},
	}
}

// demo tells the story, step by step.
type demo struct {
	*app
	execute func(ctx context.Context, a *app, args []string) int
	keep    bool
	shards  int
	users   int
	started time.Time
	step    int

	hosts  *demoHosts
	dir    string // of config and migrations
	config string // file name
	lookup func(name string) (string, bool)
}

func (d *demo) run(ctx context.Context) error {
	for _, step := range append(d.steps(), d.measure) {
		if err := step(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// steps are the story but for its last one, which measures.
func (d *demo) steps() []func(context.Context) error {
	return []func(context.Context) error{d.startHosts, d.writeConfig, d.createShards, d.runMigrations, d.useRouter, d.check}
}

// tell starts a step: its title, and what it does in plain sentences.
func (d *demo) tell(title, text string) {
	d.step++
	fmt.Fprintf(d.stdout, "\n%d. %s\n\n%s\n\n", d.step, title, indent(text, "   "))
}

// kiloshard shows a command and runs it.
func (d *demo) kiloshard(ctx context.Context, args ...string) error {
	fmt.Fprintf(d.stdout, "   $ kiloshard %s\n", strings.Join(args, " "))
	inner := &app{stdin: d.stdin, stdout: &indented{out: d.stdout}, stderr: d.stderr, lookup: d.lookup}
	if code := d.execute(ctx, inner, append(args, "-c", d.config)); code != exitDone {
		return errSilent
	}
	return nil
}

func (d *demo) startHosts(ctx context.Context) (err error) {
	d.tell("Two hosts", "Two Postgres servers on this machine, thrown away afterwards, stand for two physical\nhosts. In production each is a primary with its replicas.")
	d.hosts, err = startDemoHosts(ctx, d.keep)
	if err != nil {
		return err
	}
	for i, s := range d.hosts.servers {
		fmt.Fprintf(d.stdout, "   %s: %s\n", d.hosts.names[i], s.Describe())
	}
	return nil
}

func (d *demo) writeConfig(context.Context) error {
	var err error
	if d.dir, err = os.MkdirTemp("", "kiloshard-demo-"); err != nil {
		return err
	}
	d.config = filepath.Join(d.dir, "kiloshard.yaml")
	d.lookup = d.hosts.lookup
	text := demoConfig(d.shards, d.started)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		return err
	}
	files, err := fs.Sub(demoFiles, "demo")
	if err != nil {
		return err
	}
	if err := os.CopyFS(d.dir, files); err != nil {
		return err
	}
	d.tell("The map", "kiloshard.yaml says how many shards there are and on which host each one lives. For a\nproject of your own, kiloshard init writes a commented one. This is the demo's:")
	fmt.Fprintln(d.stdout, indent(text, "   | "))
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

func (d *demo) createShards(ctx context.Context) error {
	d.tell("1,024 shards", "Each shard is a Postgres schema with a next_id() of its own. They are created on both\nhosts at once; a second run finds nothing to do.")
	return d.kiloshard(ctx, "create")
}

func (d *demo) runMigrations(ctx context.Context) error {
	d.tell("Tables", "Three tern migrations of a small photo service run in every shard: users, photos and\nlikes, with a foreign key and an index inside the shard. They name tables without a schema:")
	text, err := demoFiles.ReadFile("demo/migrations/002_create_photos.sql")
	if err != nil {
		return err
	}
	up, _, _ := strings.Cut(string(text), "\n---- create above")
	fmt.Fprintln(d.stdout, indent(strings.TrimSpace(up), "   | ")+"\n")
	if err := d.kiloshard(ctx, "migrate", "up"); err != nil {
		return err
	}
	fmt.Fprintln(d.stdout)
	return d.kiloshard(ctx, "migrate", "status")
}

func (d *demo) useRouter(ctx context.Context) error {
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
	load := &demoLoad{router: r, users: d.users, photosEach: 3, workers: 16}

	d.tell("10,000 users", `The router takes a user to shard and host: the user's number modulo 1,024. A Go service
writes to it as to any pgx pool; every insert into photos calls its shard's next_id():`)
	fmt.Fprintln(d.stdout, indent(demoProgram, "   | ")+"\n")
	if err := d.kiloshard(ctx, "route", "31341"); err != nil {
		return err
	}
	if err := load.write(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.stdout, "\n   wrote %s\n", load.wrote)

	d.tell("Read back", "An ID names its shard, so a photo is found by its ID alone; and by its user, on the user's shard.")
	if err := load.readByID(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.stdout, "   read %s: each was its user's\n", load.readIDs)
	if err := load.readByUser(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.stdout, "   read %s: each had the photos that were written\n", load.readUsers)

	id := load.photos[len(load.photos)-1][0]
	d.tell("An ID taken apart", "A photo's ID holds when and where it was made:")
	return d.kiloshard(ctx, "id", "decode", fmt.Sprint(id))
}

const demoProgram = `shard, err := r.ForKey(ctx, shards.NumberKey(user))
err = shard.QueryRow(ctx,
    "insert into photos (user_id, title) values ($1, $2) returning id", user, title).Scan(&id)

shard, err = r.ForID(id)`

func (d *demo) check(ctx context.Context) error {
	d.tell("Check", "verify compares every shard on every host with the map; status looks at the whole cluster.")
	if err := d.kiloshard(ctx, "verify"); err != nil {
		return err
	}
	fmt.Fprintln(d.stdout)
	return d.kiloshard(ctx, "status")
}

func (d *demo) measure(ctx context.Context) error {
	d.tell("How fast", "IDs made in every way, on one server, taking turns, for two seconds; longer runs tell more.")
	return d.kiloshard(ctx, "bench", "ids", "--duration", "2s")
}

// cleanUp stops the hosts and removes the files, or says how to reach what is kept.
func (d *demo) cleanUp(ctx context.Context) error {
	if d.hosts == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if d.keep && d.dir != "" {
		if err := d.hosts.writeAccess(d.dir); err != nil {
			return err
		}
		fmt.Fprintf(d.stdout, "\nKept, with everything in %s. To reach it:\n\n", d.dir)
		fmt.Fprintf(d.stdout, "   . %s\n   psql service=pg-a\n   kiloshard -c %s status\n", filepath.Join(d.dir, "env"), d.config)
		fmt.Fprintf(d.stdout, "\nTo be rid of it: %s\n", d.hosts.endCommand(d.dir))
		return d.hosts.stop(ctx)
	}
	err := d.hosts.stop(ctx)
	if d.dir != "" {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	fmt.Fprintf(d.stdout, "\nBoth hosts are stopped and removed, after %s in all. KEEP=1 would keep them.\n", time.Since(d.started).Round(100*time.Millisecond))
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
