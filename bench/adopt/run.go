package adopt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// ErrRows says that rows were lost, doubled, changed or misplaced, or that statements of clients failed. The report has the counts.
var ErrRows = errors.New("rows are not as clients wrote them, or statements failed")

// bench is the state of one [Run].
type bench struct {
	cfg         Config
	host, plain shards.Host // the database that is adopted, and its copy
	m           *shards.Map
	router      *router.Router
	file        *adopt.File
	clients     *clients
	began       map[string]int64 // rows of each sharded table when clients began
	dumped      float64          // seconds of pg_dump and psql
	report      Report
}

// LeastRows returns the least number of rows for a number of shards, so that each shard and each client has users.
func LeastRows(shards int) int { return max(stride, shards) * 100 / userShare }

// Run adopts a database of a service under clients of the old and of the new code. The old code writes until the old tables are closed, and
// reads until gate 3. The error is [ErrRows], with the report, if anything is wrong with a row or a statement of a client.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	if cfg.Clients > MostClients {
		return nil, fmt.Errorf("%d clients: expected %d at most", cfg.Clients, MostClients)
	}
	if least := LeastRows(cfg.Shards); cfg.Rows < least {
		return nil, fmt.Errorf("%d rows: expected %d or more with %d shards", cfg.Rows, least, cfg.Shards)
	}
	b := &bench{cfg: cfg, clients: newClients(cfg.Pause), report: Report{Shards: cfg.Shards, Clients: cfg.Clients, Rounds: cfg.Rounds}}
	defer func() {
		b.clients.end()
		if b.router != nil {
			b.router.Close()
		}
	}()
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	b.clients.end()
	b.sum()
	if b.report.wrong() {
		return &b.report, ErrRows
	}
	return &b.report, nil
}

func (b *bench) run(ctx context.Context) error {
	for _, do := range []func(context.Context) error{b.open, b.before, b.views, b.tables} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	if b.cfg.End == EndBack {
		return b.back(ctx)
	}
	return b.finish(ctx)
}

// open makes the service, the empty shards and the copy's database, and starts clients of the old code.
func (b *bench) open(ctx context.Context) error {
	b.cfg.Progress("making the service")
	for _, host := range []*shards.Host{&b.host, &b.plain} {
		hosts, err := b.cfg.NewHosts(ctx)
		if err != nil {
			return err
		}
		*host = hosts[0]
	}
	// The rows are made so that they satisfy all foreign keys.
	statements := append([]string{schema, "set session_replication_role = replica"}, fill(b.cfg.Rows)...)
	if err := server.Exec(ctx, b.host, append(statements, "vacuum analyze", "checkpoint")...); err != nil {
		return err
	}
	config := server.Config(b.cfg.Shards, []shards.Host{b.host})
	config.SearchPath, config.OldIDsBelow = []string{"public"}, 1<<40
	var err error
	if b.m, err = config.Map(); err != nil {
		return err
	}
	if b.file, err = adopt.ParseFile("adopt.yaml", []byte(decisions)); err != nil {
		return err
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: b.m}); err != nil {
		return err
	}
	if err := b.measureOld(ctx); err != nil {
		return err
	}
	for n := range b.cfg.Clients {
		conn, err := pgx.Connect(ctx, b.host.ConnString())
		if err != nil {
			return err
		}
		b.clients.start(int64(n), of(b.cfg.Rows, userShare), true, oldWay(conn), func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	}
	b.router, err = router.New(ctx, router.Config{Map: b.m, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = int32(b.cfg.Clients + 1)
		return nil
	}})
	return err
}

// measureOld reads the version, and the rows and sizes of the old tables.
func (b *bench) measureOld(ctx context.Context) (err error) {
	if b.report.Version, _, err = server.Version(ctx, b.host); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, b.host.ConnString())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	b.began = map[string]int64{}
	for _, name := range append(sharded(), "countries", "tags", "jobs") {
		var count, bytes int64
		if err := conn.QueryRow(ctx, fmt.Sprintf(`select count(*), pg_total_relation_size('public.%s') from public.%[1]s`, name)).Scan(&count, &bytes); err != nil {
			return err
		}
		b.began[name] = count
		b.report.OldBytes += bytes
		b.report.Rows += int(count)
	}
	return nil
}

// step measures what clients notice while do runs. It returns how long they were held back by do itself, which does not count.
func (b *bench) step(ctx context.Context, name string, compared bool, do func() (held time.Duration, err error), databases ...shards.Host) error {
	b.cfg.Progress(name)
	var names []string
	for _, host := range append(databases, b.host) {
		cfg, err := pgx.ParseConfig(host.ConnString())
		if err != nil {
			return shards.ErrBadDSN
		}
		names = append(names, cfg.Database)
	}
	s, err := sample(ctx, b.host, names...)
	if err != nil {
		return err
	}
	_ = b.clients.take()
	began := time.Now()
	held, err := do()
	seconds := (time.Since(began) - held).Seconds()
	peak, wal, sampleErr := s.end(ctx)
	if err := errors.Join(err, sampleErr); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.clients.hold()() // until each statement that began in the step has ended
	took := b.clients.take()
	f := Step{Name: name, Seconds: seconds, Calls: len(took), Peak: peak, PeakTo: float64(peak) / float64(b.report.OldBytes), WAL: wal}
	var all []float64
	for _, t := range took {
		if all = append(all, t.ms); t.ms > f.Longest {
			f.Longest, f.Which = t.ms, t.what
		}
	}
	f.Median = stats.Median(all)
	if compared {
		f.Ratio = seconds / b.dumped
	}
	b.report.Steps = append(b.report.Steps, f)
	return nil
}

// turn lets clients run alone.
func (b *bench) turn(ctx context.Context, name string) error {
	return b.step(ctx, name, false, func() (time.Duration, error) {
		select {
		case <-time.After(b.cfg.Turn):
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

// before copies the database by pg_dump, under the same clients.
func (b *bench) before(ctx context.Context) error {
	if err := b.turn(ctx, "old code"); err != nil {
		return err
	}
	err := b.step(ctx, "pg_dump | psql", false, func() (time.Duration, error) {
		began := time.Now()
		err := dump(ctx, b.host, b.plain)
		b.dumped = time.Since(began).Seconds()
		return 0, err
	}, b.plain)
	if err != nil {
		return err
	}
	return server.Exec(ctx, b.plain, "vacuum analyze")
}

// views is gate 1. Clients of the new code begin after it.
func (b *bench) views(ctx context.Context) error {
	err := b.step(ctx, "adopt views", true, func() (time.Duration, error) {
		_, err := views.Make(ctx, views.Config{Map: b.m, File: b.file, Text: decisions})
		return 0, err
	})
	if err != nil {
		return err
	}
	for n := range b.cfg.Clients {
		b.clients.start(int64(b.cfg.Clients+n), of(b.cfg.Rows, userShare), false, newWay(b.m, b.router), func() {})
	}
	if err := b.turn(ctx, "old and new code"); err != nil {
		return err
	}
	defer b.clients.hold()()
	if err := b.check(ctx, "adopt views", false, false); err != nil {
		return err
	}
	return b.compareStatements(ctx, stageView, 0)
}

// tables is gate 2. Clients are held back while statements are compared with the mirrors at work, before the copy begins.
func (b *bench) tables(ctx context.Context) error {
	err := b.step(ctx, "adopt tables", true, func() (held time.Duration, err error) {
		first := true
		_, tablesErr := rows.Tables(ctx, rows.Config{Map: b.m, File: b.file, Report: func(e rows.Event) {
			if e.Kind != rows.Copying || !first {
				return
			}
			first = false
			began := time.Now()
			release := b.clients.hold()
			for n := range e.Shards.All() {
				err = b.compareStatements(ctx, stageForward, n)
				break
			}
			release()
			held = time.Since(began)
		}})
		return held, errors.Join(err, tablesErr)
	})
	if err != nil {
		return err
	}
	if err := b.turn(ctx, "tables, mirrored back"); err != nil {
		return err
	}
	defer b.clients.hold()()
	if b.cfg.damage != nil {
		if err := b.damaged(ctx); err != nil {
			return err
		}
	}
	if err := b.check(ctx, "adopt tables", true, true); err != nil {
		return err
	}
	return b.compareStatements(ctx, stageBackward, 0)
}

func (b *bench) damaged(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.host.ConnString())
	if err != nil {
		return err
	}
	return errors.Join(b.cfg.damage(ctx, conn), conn.Close(ctx))
}

// back returns to gate 1.
func (b *bench) back(ctx context.Context) error {
	err := b.step(ctx, "adopt back, to views", true, func() (time.Duration, error) {
		_, err := rows.Back(ctx, rows.Config{Map: b.m})
		return 0, err
	})
	if err != nil {
		return err
	}
	if err := b.turn(ctx, "views again"); err != nil {
		return err
	}
	defer b.clients.hold()()
	return b.check(ctx, "adopt back", false, false)
}

// finish is gate 3. The old tables are kept out of the way first, and then dropped.
func (b *bench) finish(ctx context.Context) error {
	b.clients.endOld()
	err := b.step(ctx, "adopt finish", true, func() (time.Duration, error) {
		_, err := rows.Finish(ctx, rows.Config{Map: b.m, Drop: func([]string) error { return nil }})
		return 0, err
	})
	if err != nil {
		return err
	}
	if err := b.turn(ctx, "shards"); err != nil {
		return err
	}
	defer b.clients.hold()()
	return b.check(ctx, "adopt finish", true, false)
}

// sum adds the counts of the clients.
func (b *bench) sum() {
	for _, c := range b.clients.all {
		r := &b.report
		r.Written, r.Refused, r.Failed, r.Changed = r.Written+c.counts.Written, r.Refused+c.counts.Refused, r.Failed+c.counts.Failed, r.Changed+c.counts.Changed
		for _, text := range c.counts.Errors {
			r.say("%s", text)
		}
	}
}
