package promote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// replayLimit is how long a standby may take to replay the fences again: it had them before, but may have restarted since.
const replayLimit = 30 * time.Second

// promoteScript promotes a standby that has the fences of all shards that leave. The copies of the shards that stay get other
// names, and rows in the ledger as shards that have moved to the source, so that they are fenced and cleaned like any. The target's copy of the source's
// ledger becomes its own. One statement does all that, since the copies take writes until they
// have other names: the server completes it if the mover dies.
const promoteScript = `
DO $promote%[1]s$
DECLARE
  this   CONSTANT text := '%[1]s';
  home   CONSTANT text := '%[2]s';
  began  CONSTANT timestamp with time zone := clock_timestamp();
  m record;
BEGIN
  IF NOT EXISTS (SELECT FROM kiloshard.moves v WHERE v.split = this AND v.side = 'target') AND %[13]s <> '%[4]s' THEN
    RAISE 'it does not have the fences of all shards that leave';
  END IF;
  IF pg_is_in_recovery() THEN
    PERFORM pg_promote(false);
    WHILE pg_is_in_recovery() LOOP
      IF clock_timestamp() > began + interval '%[5]d seconds' THEN RAISE 'it was not promoted within %[5]d seconds'; END IF;
      PERFORM pg_sleep(0.002);
    END LOOP;
    COMMIT; -- a transaction that began on a standby cannot write
  END IF;
  UPDATE kiloshard.moves v SET side = 'target', step = '%[6]s', carried = pg_current_snapshot()::text WHERE v.split = this AND v.side = 'source' AND v.source = home;
  IF NOT FOUND THEN RETURN; END IF; -- an earlier mover has done it
  DELETE FROM kiloshard.moves v WHERE v.split IS DISTINCT FROM this;
  DELETE FROM kiloshard.move_markers;
  FOR m IN SELECT * FROM unnest('%[7]s'::text[], '%[8]s'::int[], '%[9]s'::text[]) c (id, shard, schema) WHERE to_regnamespace(schema) IS NOT NULL LOOP
    INSERT INTO kiloshard.moves (id, shard, schema, side, source, target, step, outcome, who, began, stepped, fenced, split)
      VALUES (m.id, m.shard, m.schema, 'source', '%[3]s', home, '%[10]s', '%[11]s', '%[12]s', began, began, clock_timestamp(), this);
    EXECUTE format('ALTER SCHEMA %%I RENAME TO %%I', m.schema, m.schema || '__moved_' || m.id);
    UPDATE kiloshard.moves v SET parts = ` + fence.Parts + `to_regnamespace(m.schema || '__moved_' || m.id)) WHERE v.id = m.id;
  END LOOP;
END
$promote%[1]s$`

// promote makes the standby a primary that serves the shards that leave, and no others. All of them are fenced on the source.
func (p *Promotion) promote(ctx context.Context) error {
	if err := p.Connect(ctx); err != nil {
		return err
	}
	stand, err := p.replayed(ctx, replayLimit)
	if errors.Is(err, errStandbyLate) {
		err = fmt.Errorf("%w: %s", err, p.standby().Behind(ctx))
	}
	if err != nil && !errors.Is(err, errNoStandby) {
		return err
	}
	now, err := p.cfg.Store.Load(ctx)
	if err != nil {
		return err
	}
	var ids, schemas, numbers []string
	for _, n := range p.Staying(now.Map) {
		ids, schemas, numbers = append(ids, ledger.NewID()), append(schemas, now.Map.Schema(n)), append(numbers, fmt.Sprint(n))
	}
	array := func(texts []string) string { return "{" + strings.Join(texts, ",") + "}" }
	script := fmt.Sprintf(promoteScript, p.Split, session.Quoted(p.Source), session.Quoted(p.Target), stand, int(limit.Seconds()/2), ledger.Promoting,
		array(ids), array(numbers), array(schemas), ledger.Switched, ledger.Moved, session.Quoted(p.Who), fmt.Sprintf(fences, p.Split))
	if err := session.Run(ctx, p.to, script); err != nil {
		return fmt.Errorf("promoting %s: %w", p.Target, err)
	}
	p.event(progress.Promoted)
	if err := p.lower(ctx, p.to, ledger.Promoting); err != nil {
		return fmt.Errorf("taking the fences down on %s: %w", p.Target, err)
	}
	p.event(progress.Unfenced)
	return nil
}

// switched writes the step after the change of the map, and the snapshot of the target when it had all rows, for move verify.
func (p *Promotion) switched(ctx context.Context) error {
	var carried string
	if err := p.to.QueryRow(ctx, `SELECT carried FROM kiloshard.moves WHERE id = $1`, p.ID).Scan(&carried); err != nil {
		return err
	}
	if _, err := p.from.Exec(ctx, `UPDATE kiloshard.moves SET carried = $2 WHERE split = $1`, p.Split, carried); err != nil {
		return err
	}
	return p.setSteps(ctx, ledger.Switched, ledger.Promoting)
}

// finish fences what has stayed, on the target, and ends the moves in both ledgers.
func (p *Promotion) finish(ctx context.Context) error {
	if err := p.Connect(ctx); err != nil {
		return err
	}
	for _, m := range p.moves {
		if err := session.Run(ctx, p.to, fence.Drop(m.FenceSchema())); err != nil {
			return err
		}
	}
	p.event(progress.FencesDropped)
	copies, err := ledger.Read(ctx, p.to, p.cfg.Map, ledger.SourceSide)
	if err != nil {
		return err
	}
	for _, m := range copies {
		var free bool
		if err := p.to.QueryRow(ctx, `SELECT to_regnamespace($1) IS NULL`, m.Schema).Scan(&free); err != nil {
			return err
		}
		if m.Split == p.Split && free {
			if err := fence.CreateInPlace(ctx, p.to, m, m.OldSchema()); err != nil {
				return fmt.Errorf("fence of %s on %s: %w", m.Schema, p.Target, err)
			}
		}
	}
	p.event(progress.CopiesFenced)
	return p.end(ctx, ledger.Moved, p.to, p.from)
}

// end ends the moves in the ledgers of some hosts, that of the source last.
func (p *Promotion) end(ctx context.Context, outcome ledger.Outcome, conns ...*pgx.Conn) error {
	for _, conn := range conns {
		const query = `UPDATE kiloshard.moves SET outcome = $2, stepped = clock_timestamp() WHERE split = $1 AND outcome IS NULL`
		if _, err := conn.Exec(ctx, query, p.Split, outcome); err != nil {
			return err
		}
	}
	p.Step, p.Outcome = ledger.Finished, outcome
	kind := progress.Done
	if outcome == ledger.Aborted {
		kind = progress.Aborted
	}
	p.eventf(kind, "%s", outcome)
	return nil
}
