package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// settled is after how long what a mover has sent before it was killed is under way.
const settled = time.Second

// replayLimit is how long a standby may take to replay the fences once more: it had them before, but may have been restarted since.
const replayLimit = 30 * time.Second

// promoteScript promotes a standby that has the fences of all shards that leave, and puts the copies of what stays away: they get other
// names, and are noted as shards that have moved to the source, so that they are fenced and cleaned like any. In the ledger, of which
// the target has the source's copy, it becomes the target. All that is one statement, since the copies take writes until they
// have other names: the server goes on with it if the mover dies.
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
  IF NOT FOUND THEN RETURN; END IF; -- it is done
  DELETE FROM kiloshard.moves v WHERE v.split IS DISTINCT FROM this;
  DELETE FROM kiloshard.move_markers;
  FOR m IN SELECT * FROM unnest('%[7]s'::text[], '%[8]s'::int[], '%[9]s'::text[]) c (id, shard, schema) WHERE to_regnamespace(schema) IS NOT NULL LOOP
    INSERT INTO kiloshard.moves (id, shard, schema, side, source, target, step, outcome, who, began, stepped, fenced, split)
      VALUES (m.id, m.shard, m.schema, 'source', '%[3]s', home, '%[10]s', '%[11]s', '%[12]s', began, began, clock_timestamp(), this);
    EXECUTE format('ALTER SCHEMA %%I RENAME TO %%I', m.schema, m.schema || '__moved_' || m.id);
    UPDATE kiloshard.moves v SET parts = ` + partsOf + `to_regnamespace(m.schema || '__moved_' || m.id)) WHERE v.id = m.id;
  END LOOP;
END
$promote%[1]s$`

// promote makes the standby a primary that serves the shards that leave, and no others. All of them are fenced on the source.
func (p *promotion) promote(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
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
	for _, n := range p.staying(now.Map) {
		ids, schemas, numbers = append(ids, newID()), append(schemas, now.Map.Schema(n)), append(numbers, fmt.Sprint(n))
	}
	array := func(texts []string) string { return "{" + strings.Join(texts, ",") + "}" }
	script := fmt.Sprintf(promoteScript, p.Split, session.Quoted(p.Source), session.Quoted(p.Target), stand, int(promoteLimit.Seconds()/2), Promoting,
		array(ids), array(numbers), array(schemas), Switched, Moved, session.Quoted(p.Who), fmt.Sprintf(fences, p.Split))
	if err := session.Run(ctx, p.to, script); err != nil {
		return fmt.Errorf("promoting %s: %w", p.Target, err)
	}
	p.event("promoted")
	if err := p.some(ctx, p.to, "", openAll, Promoting); err != nil {
		return fmt.Errorf("taking the fences down on %s: %w", p.Target, err)
	}
	p.event("unfenced")
	return nil
}

// switched notes that the map is changed, and when the target had all, for [Verify].
func (p *promotion) switched(ctx context.Context) error {
	var carried string
	if err := p.to.QueryRow(ctx, `SELECT carried FROM kiloshard.moves WHERE id = $1`, p.ID).Scan(&carried); err != nil {
		return err
	}
	if _, err := p.from.Exec(ctx, `UPDATE kiloshard.moves SET carried = $2 WHERE split = $1`, p.Split, carried); err != nil {
		return err
	}
	return p.setSteps(ctx, Switched, Promoting)
}

// finish fences what has stayed, on the target, and ends the moves in both ledgers.
func (p *promotion) finish(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	for _, m := range p.moves {
		if err := session.Run(ctx, p.to, dropFence(m.fence())); err != nil {
			return err
		}
	}
	p.event("fences dropped")
	copies, err := moves(ctx, p.to, p.cfg.Map, sourceSide)
	if err != nil {
		return err
	}
	for _, m := range copies {
		var free bool
		if err := p.to.QueryRow(ctx, `SELECT to_regnamespace($1) IS NULL`, m.Schema).Scan(&free); err != nil {
			return err
		}
		if m.Split == p.Split && free {
			if err := session.Run(ctx, p.to, m.makeFence(m.moved())+fmt.Sprintf("; ALTER SCHEMA %s RENAME TO %s", m.fence(), m.Schema)); err != nil {
				return fmt.Errorf("fence of %s on %s: %w", m.Schema, p.Target, err)
			}
		}
	}
	p.event("copies fenced")
	return p.end(ctx, Moved, p.to, p.from)
}

// end ends the moves in the ledgers of some hosts, that of the source last.
func (p *promotion) end(ctx context.Context, outcome Outcome, conns ...*pgx.Conn) error {
	for _, conn := range conns {
		const query = `UPDATE kiloshard.moves SET outcome = $2, stepped = clock_timestamp() WHERE split = $1 AND outcome IS NULL`
		if _, err := conn.Exec(ctx, query, p.Split, outcome); err != nil {
			return err
		}
	}
	p.Step, p.Outcome = Finished, outcome
	p.event("%s", outcome)
	return nil
}

// abort takes a promotion back, as long as the standby is one.
func (p *promotion) abort(ctx context.Context) error {
	working := ctx
	switch p.Step {
	case Switched, Finished:
		return fmt.Errorf("%s serves the shards already: expected move resume, and then moves back to %s", p.Target, p.Source)
	case Promoting: // nobody serves the shards, so an interrupt has to wait
		p.hold()
		var cancel context.CancelFunc
		working, cancel = anyway(ctx)
		defer cancel()
		if err := p.notPromoted(working); err != nil {
			return err
		}
		if err := p.stay(working, "is aborted"); err != nil {
			return err
		}
	}
	if err := p.unfenceAll(working, Aborting); err != nil {
		return err
	}
	if p.Step != Aborting {
		if err := p.setSteps(ctx, Aborting, Cutover, Fenced, Promoting, Aborting); err != nil {
			return err
		}
	}
	for _, m := range p.moves {
		if err := session.Run(ctx, p.from, dropFence(m.fence())); err != nil {
			return err
		}
	}
	if err := dropMarkers(ctx, p.from, p.Split); err != nil {
		return err
	}
	return p.end(ctx, Aborted, p.from)
}

// abortUnserved takes a promotion back, unless the map has a shard on the target.
func (p *promotion) abortUnserved(ctx context.Context) error {
	now, err := p.newest(ctx)
	if err == nil {
		err = p.notOnTarget(now)
	}
	if err == nil && (p.Step == Cutover || p.Step == Aborting) { // else it is made once the standby is known to be one
		err = p.stay(ctx, "is aborted")
	}
	if err != nil {
		return err
	}
	return p.abort(ctx)
}

// notPromoted returns an error if the standby was promoted. One that does not answer may have been: it has no shard that it could serve
// then, but is of no use as a standby.
func (p *promotion) notPromoted(ctx context.Context) error {
	err := p.connect(ctx)
	if err == nil { // a mover that was killed may have sent it a moment ago
		err = wait.Sleep(ctx, settled)
	}
	standby := true
	if err == nil {
		const query = `
			SELECT pg_is_in_recovery(), EXISTS (SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()
				AND application_name = 'kiloshard move' AND state = 'active' AND query LIKE '%pg_promote%')`
		err = wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
			var busy bool
			err := p.to.QueryRow(ctx, query).Scan(&standby, &busy)
			return !busy, err
		})
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		p.event("note: %s does not answer (%v): if it was promoted, make it anew before it is used", p.Target, err)
	case !standby:
		return fmt.Errorf("%s is promoted already: expected move resume", p.Target)
	}
	return nil
}
