package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

var (
	errStandbyLate = errors.New("the standby has not replayed the fences")
	errNoStandby   = errors.New("it is no standby any more: somebody else has promoted it")
)

// fencesAtOnce is how many shards a transaction of a promotion fences, or takes the fences of: each of their tables and sequences is locked.
const fencesAtOnce = 32

// fenceAll fences the shards of some moves, as [job.cutOnce] and [job.erect] do one, on the server: a round trip for all.
const fenceAll = `
DO $kiloshard$
DECLARE
  m record;
  q record;
  last record;
  held jsonb;
BEGIN
  FOR m IN
    SELECT v.id, v.schema, string_agg(c.oid::regclass::text, ', ' ORDER BY c.relkind = 'r', c.relispartition, NOT c.relhassubclass, c.oid) FILTER (WHERE c.relkind IN ('r', 'p')) AS tables,
      coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('name', c.relname, 'path', c.oid::regclass::text)) FILTER (WHERE c.relkind = 'S'), '[]') AS sequences
    FROM kiloshard.moves v JOIN pg_namespace n ON n.nspname = v.schema
      LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid
      LEFT JOIN pg_class c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'S') LEFT JOIN pg_sequence s ON s.seqrelid = c.oid
    WHERE v.id = ANY ('%[1]s') AND v.step = '%[2]s' AND v.outcome IS NULL GROUP BY v.id ORDER BY v.shard
  LOOP
    IF m.tables IS NOT NULL THEN EXECUTE 'LOCK TABLE ' || m.tables || ' IN ACCESS EXCLUSIVE MODE'; END IF;
    held := '[]';
    FOR q IN SELECT * FROM jsonb_to_recordset(m.sequences) r (name text, path text, seqmax bigint, seqmin bigint, seqstart bigint, seqincrement bigint, seqcycle bool) LOOP
      EXECUTE format('ALTER SEQUENCE %%s MAXVALUE %%s', q.path, q.seqmax); -- keeps out nextval
      EXECUTE 'SELECT last_value, is_called FROM ' || q.path INTO last;
      held := held || jsonb_build_object('name', q.name, 'increment', q.seqincrement, 'max', q.seqmax, 'cycle', q.seqcycle, 'last', last.last_value, 'called', last.is_called);
      EXECUTE format('ALTER SEQUENCE %%s MAXVALUE %%s INCREMENT 1 NO CYCLE', q.path, greatest(last.last_value, q.seqstart, q.seqmin + 1));
      PERFORM setval(q.path, greatest(last.last_value, q.seqstart, q.seqmin + 1));
    END LOOP;
    EXECUTE format('ALTER SCHEMA %%I RENAME TO %%I', m.schema, m.schema || '__moved_' || m.id);
    EXECUTE format('ALTER SCHEMA %%I RENAME TO %%I', m.schema || '__fence_' || m.id, m.schema);
    UPDATE kiloshard.moves SET step = '%[3]s', stepped = clock_timestamp(), fenced = clock_timestamp(), sequences = held,
      parts = ` + partsOf + `to_regnamespace(m.schema || '__moved_' || m.id)) WHERE id = m.id;
  END LOOP;
END
$kiloshard$`

// openAll takes the fences of some moves down, as [Move.unfenceScript] does one.
const openAll = `
DO $kiloshard$
DECLARE
  m record;
  q record;
BEGIN
  FOR m IN SELECT id, schema, sequences FROM kiloshard.moves WHERE id = ANY ('%[1]s') AND outcome IS NULL AND fenced IS NOT NULL ORDER BY shard LOOP
    EXECUTE format('ALTER SCHEMA %%I RENAME TO %%I', m.schema, m.schema || '__fence_' || m.id);
    EXECUTE format('ALTER SCHEMA %%I RENAME TO %%I', m.schema || '__moved_' || m.id, m.schema);
    FOR q IN SELECT format('%%I.%%I', m.schema, name) AS path, r.* FROM jsonb_to_recordset(m.sequences) r (name text, increment bigint, max bigint, cycle bool, last bigint, called bool) LOOP
      EXECUTE format('ALTER SEQUENCE %%s MAXVALUE %%s INCREMENT %%s %%s', q.path, q.max, q.increment, CASE WHEN q.cycle THEN 'CYCLE' ELSE 'NO CYCLE' END);
      PERFORM setval(q.path, q.last, q.called);
    END LOOP;
    UPDATE kiloshard.moves SET step = '%[2]s', fenced = NULL WHERE id = m.id;
  END LOOP;
END
$kiloshard$`

// some runs a script for some moves after the other, a transaction each. Its first parameter is an array of their IDs.
func (p *promotion) some(ctx context.Context, conn *pgx.Conn, settings, script string, args ...any) error {
	for ids := range slices.Chunk(p.ids(), fencesAtOnce) {
		all := append([]any{"{" + strings.Join(ids, ",") + "}"}, args...)
		if err := session.Run(ctx, conn, "BEGIN; "+settings+fmt.Sprintf(script, all...)+"; COMMIT"); err != nil {
			return err
		}
	}
	return nil
}

// unfenceAll takes the fences on the source down.
func (p *promotion) unfenceAll(ctx context.Context, step Step) error {
	if err := p.connectSource(ctx); err != nil {
		return err
	}
	if err := p.some(ctx, p.from, "", openAll, step); err != nil {
		return fmt.Errorf("taking the fences down on %s: %w", p.Source, err)
	}
	p.letGo()
	p.event("unfenced")
	return nil
}

// cutover tries until all shards are fenced, and the standby knows that.
func (p *promotion) cutover(ctx context.Context) error {
	// What a mover has fenced that was killed is in nobody's way meanwhile.
	if err := p.some(ctx, p.from, "", openAll, Cutover); err != nil {
		return err
	}
	for _, m := range p.moves {
		if err := session.Run(ctx, p.from, m.makeFence(m.Schema)); err != nil {
			return fmt.Errorf("fence of %s on %s: %w", m.Schema, p.Source, err)
		}
	}
	p.event("fences made")
	began := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, cutoverPause) {
		if err := p.connect(ctx); err != nil {
			return err
		}
		if err := p.ready(ctx, began); err != nil {
			return err
		}
		err := p.readMap(ctx)
		if err == nil {
			err = p.fenceOnce(ctx)
		}
		if err == nil {
			return nil
		}
		if err := p.tryAgain(ctx, "promotion", began, pause, err); err != nil {
			return err
		}
	}
}

// fenceOnce leaves all shards fenced and about to be promoted, or none.
func (p *promotion) fenceOnce(ctx context.Context) error {
	p.hold()
	err := p.fence(ctx)
	ctx, cancel := anyway(ctx)
	defer cancel()
	if err == nil {
		return p.setSteps(ctx, Promoting, Fenced)
	}
	if undone := p.unfenceAll(ctx, Cutover); undone != nil {
		return errors.Join(err, undone)
	}
	return err
}

// ready waits, while writers go on, until nothing is known that would keep them waiting: a transaction that is open, a vacuum, a standby
// that is behind.
func (p *promotion) ready(ctx context.Context, began time.Time) error {
	var schemas []string
	for _, m := range p.moves {
		schemas = append(schemas, m.Schema)
	}
	if err := p.untilQuiet(ctx, p.from, began, schemas...); err != nil {
		return err
	}
	if err := p.untilQuiet(ctx, p.to, began, schemas...); err != nil { // whose readers would keep it from replaying the fences
		return fmt.Errorf("%s: %w", p.Target, err)
	}
	for _, schema := range schemas {
		if err := session.Run(ctx, p.from, "BEGIN; "+keepOutVacuum(schema)+"COMMIT"); err != nil {
			return err
		}
	}
	told := time.Time{}
	for {
		err := p.follows(ctx, p.cfg.MaxLag)
		if !errors.Is(err, errMarkerLate) {
			return err
		}
		if p.outOfPatience(began) {
			return fmt.Errorf("no promotion within %s: %s: %w", p.cfg.Patience, p.Target, err)
		}
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			p.event("waits for %s: %v", p.Target, err)
		}
	}
}

// follows returns when the standby has what was written on the source a moment ago.
func (p *promotion) follows(ctx context.Context, limit time.Duration) error {
	attempt := time.Now().UnixNano()
	if _, err := p.from.Exec(ctx, `INSERT INTO kiloshard.move_markers VALUES ($1, $2)`, p.Split, attempt); err != nil {
		return err
	}
	defer func() {
		_ = dropMarkers(context.WithoutCancel(ctx), p.from, p.Split) // also at the end
	}()
	err := wait.Until(ctx, limit, wait.Quickly, errMarkerLate, func() (there bool, err error) {
		const query = `SELECT pg_is_in_recovery(), EXISTS (SELECT FROM kiloshard.move_markers WHERE move = $1 AND attempt = $2)`
		standby := true
		err = p.to.QueryRow(ctx, query, p.Split, attempt).Scan(&standby, &there)
		if err == nil && !standby {
			return false, fmt.Errorf("%s: %w: expected a standby of %s", p.Target, errNoStandby, p.Source)
		}
		return there, session.Ignoring(session.Ignoring(err, "40001"), "42P01") // it replays a lock; it has no ledger yet
	})
	if errors.Is(err, errMarkerLate) {
		return fmt.Errorf("%w: %s", err, p.standby().Behind(ctx))
	}
	return err
}

// fence fences all shards, and waits for the standby. Writers wait for the longest pause at most.
func (p *promotion) fence(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, p.cfg.MaxPause)
	defer cancel()
	settings := fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = %d; ", p.cfg.LockTimeout.Milliseconds(), p.cfg.MaxPause.Milliseconds())
	err := p.some(limited, p.from, settings, fenceAll, Cutover, Fenced)
	if err == nil {
		p.event("fenced")
		if _, err = p.replayed(limited, 0); errors.Is(err, context.DeadlineExceeded) {
			err = errStandbyLate
		}
	}
	if err == nil {
		p.event("replayed")
		err = p.alone(limited)
	}
	if err == nil {
		return nil
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w (--max-pause %s): %w", errPauseOver, p.cfg.MaxPause, err)
	}
	return err
}

// alone returns an error if another move is under way on the source: what it has made would be on both hosts. None begins any more.
func (p *promotion) alone(ctx context.Context) error {
	var others bool
	err := p.from.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE outcome IS NULL AND split IS DISTINCT FROM $1)`, p.Split).Scan(&others)
	if err == nil && others {
		err = fmt.Errorf("%w, from or to %s", ErrUnderWay, p.Source)
	}
	return err
}

// fences tells the fences that stand from all others that stood before.
const fences = `(SELECT coalesce(string_agg(id || ' ' || extract(epoch FROM fenced), ', ' ORDER BY id), '') FROM kiloshard.moves WHERE split = '%s' AND fenced IS NOT NULL)`

// fencesOn reads the fences of a host.
func (p *promotion) fencesOn(ctx context.Context, conn *pgx.Conn) (found string, standby bool, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_is_in_recovery(), "+fmt.Sprintf(fences, p.Split)).Scan(&standby, &found)
	return found, standby, err
}

// replayed returns the fences when the standby has them, and so all that was written before them.
func (p *promotion) replayed(ctx context.Context, limit time.Duration) (stand string, err error) {
	stand, _, err = p.fencesOn(ctx, p.from)
	if err != nil {
		return "", err
	}
	return stand, wait.Until(ctx, limit, wait.Quickly, errStandbyLate, func() (bool, error) {
		there, standby, err := p.fencesOn(ctx, p.to)
		switch {
		case err != nil:
			return false, session.Ignoring(err, "40001") // it replays a lock
		case !standby:
			return false, errNoStandby
		}
		return there == stand, nil
	})
}
