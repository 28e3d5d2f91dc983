package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// work is the work to do on the hosts of a map.
type work struct {
	m           *shards.Map
	inventories []*inventory

	scripts    []string // by host: what to install in its helper schema; may be empty
	helpers    []string // hosts whose helper schema has old objects
	generators []string // to create in helper schemas, such as "photo on tick-a"

	missing, incomplete, old, current []shards.Number

	grants []sql.Grant // for new shards
}

// plan compares what hosts hold with the present versions. The scripts of the helper schemas have what is old, and
// what is missing if that is to be made.
func plan(m *shards.Map, inventories []*inventory, to purpose) *work {
	p := presentOf(m)
	p.repairs = to.repairs
	w := &work{m: m, inventories: inventories, grants: grantsOf(m, inventories)}
	for _, inv := range inventories {
		script, changed := w.helper(p, inv, to.makes)
		w.scripts = append(w.scripts, script)
		if changed {
			w.helpers = append(w.helpers, inv.host.Name)
		}
	}
	for n := range m.All().All() {
		switch p.shardState(inventories[m.HostIndex(n)], n) {
		case missing:
			if inventories[m.HostIndex(n)].found[m.Schema(n)].ours {
				w.incomplete = append(w.incomplete, n)
			} else {
				w.missing = append(w.missing, n)
			}
		case old:
			w.old = append(w.old, n)
		default:
			w.current = append(w.current, n)
		}
	}
	return w
}

// helper returns the script for the helper schema of a host, and whether any of it is old.
func (w *work) helper(p *present, inv *inventory, all bool) (script string, anyOld bool) {
	var b strings.Builder
	add := func(s state, script func() string) {
		if s == old || s == missing && all {
			b.WriteString(script())
		}
		anyOld = anyOld || s == old
	}
	add(p.engineState(inv), func() string {
		script, _ := sql.Engine(params(p.m))
		return script + inv.publicRights(helper, sql.Functions(script))
	})
	add(p.keysState(inv), func() string { return sql.Keys(p.m.Config().Cluster, p.keys) })
	add(p.ledgerState(inv), sql.Ledger)
	add(p.uuidv7State(inv), sql.UUIDv7)
	for _, g := range generatorsOn(p.m, inv.host) {
		s := p.generatorState(inv, g)
		if s == missing && all {
			w.generators = append(w.generators, g.Name+" on "+inv.host.Name)
		}
		add(s, g.script)
	}
	if inv.settings != nil || b.Len() > 0 {
		b.WriteString(w.helperGrants(inv, b.Len() > 0))
	}
	return b.String(), anyOld
}

// install runs the scripts of the helper schemas on all hosts at once, and makes the extensions. Its sessions hold the hosts' locks.
func (w *work) install(ctx context.Context, s *sessions) error {
	return s.each(func(i int, conn *pgx.Conn) error {
		if w.scripts[i] != "" {
			err := retryLocks(ctx, func() error { return execScript(ctx, conn, w.scripts[i]) })
			if err != nil {
				return ofAnother(ctx, w.m.Hosts()[i], err)
			}
		}
		return w.inventories[i].makeExtensions(ctx, conn, w.m)
	})
}

// ofAnother returns the [connect.IdentityError] of a host that refused the installation because its shards belong to another
// cluster, epoch or layout. It returns any other error unchanged.
func ofAnother(ctx context.Context, host shards.Host, err error) error {
	if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != sql.Refused {
		return err
	}
	conn, refused := open(ctx, host)
	if identity := (*connect.IdentityError)(nil); errors.As(refused, &identity) {
		return identity
	}
	if refused == nil {
		_ = conn.Close(ctx) // it was not used
	}
	return err
}

// shards creates the given shards and returns those that it created, as [fanout.Run] does.
func (w *work) shards(ctx context.Context, cfg CreateConfig, numbers []shards.Number) (shards.Set, error) {
	return w.each(ctx, cfg, numbers, w.make)
}

// each runs do in batches of shards, several batches per host at a time, with a transaction for each batch.
func (w *work) each(ctx context.Context, cfg CreateConfig, numbers []shards.Number, do func(context.Context, *pgx.Conn, []shards.Number) error) (shards.Set, error) {
	return fanout.Run(ctx, fanout.Config[*pgx.Conn]{
		Map:   w.m,
		Open:  openToWork,
		Close: func(ctx context.Context, conn *pgx.Conn) { _ = conn.Close(ctx) },
		Alive: func(conn *pgx.Conn) bool { return !conn.IsClosed() },
		Do: func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) []error {
			return inBatches(ctx, conn, batch, do)
		},
		PerHost:  cfg.PerHost,
		Batch:    cfg.Batch,
		Progress: cfg.Progress,
	}, fanout.Plan(w.m, shards.SetOf(numbers...)))
}

// inBatches runs do for shards of one host in one transaction. If the server refuses that, it runs do for each shard in its
// own transaction, so that one bad schema does not block the others.
func inBatches(ctx context.Context, conn *pgx.Conn, batch []shards.Number, do func(context.Context, *pgx.Conn, []shards.Number) error) []error {
	err := do(ctx, conn, batch)
	if err == nil || len(batch) == 1 || conn.IsClosed() || ctx.Err() != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	errs := make([]error, len(batch))
	for i := range batch {
		if errs[i] = err; !conn.IsClosed() {
			errs[i] = do(ctx, conn, batch[i:i+1])
		}
	}
	return errs
}

// make creates shards of one host, all or none.
func (w *work) make(ctx context.Context, conn *pgx.Conn, batch []shards.Number) error {
	script := w.makeScript(batch)
	err := retryLocks(ctx, func() error { return execScript(ctx, conn, script) })
	err = connect.NameHolders(ctx, conn.PgConn(), err)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P06" || pg.Code == "23505" && pg.ConstraintName == "pg_namespace_nspname_index") {
		return fmt.Errorf("somebody else has made the schema meanwhile: %w", err)
	}
	return err
}

func (w *work) makeScript(batch []shards.Number) string {
	p := params(w.m)
	var script strings.Builder
	var made, incomplete []string
	for _, n := range batch {
		schema := w.m.Schema(n)
		found, ok := w.inventories[w.m.HostIndex(n)].found[schema]
		if !ok {
			script.WriteString("CREATE SCHEMA " + schema + ";\n") // fails if another role has created it
			made = append(made, schema)
		}
		if !found.whole {
			incomplete = append(incomplete, schema)
		}
		script.WriteString(sql.Shard(p, int(n), schema))
		script.WriteString(w.inventories[w.m.HostIndex(n)].publicRights(schema, sql.Functions(sql.Shard(p, int(n), schema))))
		for _, g := range generatorsOf(w.m, n) {
			script.WriteString(g.script())
		}
		if w.m.Allocates() {
			script.WriteString(keyTablesOf(w.m).script(int(n), schema))
		}
	}
	script.WriteString(w.sequencesAreRight(incomplete))
	if len(made) > 0 {
		for _, g := range w.grants {
			script.WriteString(g.Shards(made))
		}
	}
	return script.String()
}

// sequencesAreRight returns a statement that fails unless each schema has a next_id_seq that makes IDs: the script keeps an
// existing table or sequence of that name.
func (w *work) sequencesAreRight(schemas []string) string {
	const statement = `
DO $kiloshard$
DECLARE
  wrong text;
BEGIN
  SELECT s.name INTO wrong FROM pg_catalog.unnest('{%s}'::name[]) s (name)
    LEFT JOIN pg_class c ON c.relnamespace = s.name::regnamespace AND c.relname = 'next_id_seq'
    LEFT JOIN pg_sequence q ON q.seqrelid = c.oid AND q.seqtypid = 'bigint'::regtype AND q.seqincrement = 1
      AND q.seqcache = 1 AND q.seqmax = %d AND NOT q.seqcycle
    WHERE q.seqrelid IS NULL ORDER BY 1 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '%%.next_id_seq was there before and cannot make IDs', wrong USING ERRCODE = '%s',
      HINT = 'Expected a sequence made by: CREATE SEQUENCE … MAXVALUE %[2]d';
  END IF;
END
$kiloshard$;
`
	if len(schemas) == 0 {
		return ""
	}
	return fmt.Sprintf(statement, strings.Join(schemas, ","), w.m.Layout().MaxSequenceValue(), sql.Refused)
}

// lockWait limits how long a script waits for a lock. Sessions behind it in the lock's queue wait as long.
const lockWait = 200 * time.Millisecond

// lockTries is how often a script runs that does not get its lock, with pauses that grow to lockPause.
const (
	lockTries = 30
	lockPause = time.Second
)

// retryLocks retries fn while it fails because a lock is not free.
func retryLocks(ctx context.Context, fn func() error) error {
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		err := fn()
		if err == nil || try == lockTries || !connect.IsLockTimeout(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-fanout.Interrupted(ctx):
			return fmt.Errorf("%w, and not tried again: %w", fanout.ErrInterrupted, err)
		}
		pause = min(2*pause, lockPause)
	}
}
