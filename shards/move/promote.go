package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// promotion is the job of all shards that leave a host at once, since a standby of it becomes the host that they are on. Its Move is
// that of the first of them; the others differ from it in their IDs and shards.
type promotion struct {
	job

	moves []Move
}

// Promote splits a host by the promotion of a physical standby: cfg.Shards leave the host that all of them are on, and cfg.To, a host of
// the map without shards, is that standby. Nothing is copied:
//
//  1. cutover: the shards are fenced on the host, as in a move, and the standby replays that. Past [Config.MaxPause] the fences come
//     down, and it is tried again.
//  2. promote: the standby is promoted. What has stayed gets other names there, the fences come down, and the map is changed.
//  3. switched: what has stayed is fenced there, so that whoever writes to it reads where it is. The old schemas stay, on both
//     hosts, until [Clean].
//
// All shards are in the ledger of the host that they leave. What fails before the promotion is taken back. From then on, and after
// a mover has died, the error is a [shards.PartialError]: [Resume] goes on; [Abort] takes back what was not promoted.
func Promote(ctx context.Context, cfg Config) (Report, error) {
	p, err := newPromotion(cfg)
	if err != nil {
		return Report{}, err
	}
	defer p.close(ctx)
	if err := p.connect(ctx); err != nil {
		return Report{}, err
	}
	notes, err := p.check(ctx)
	if err != nil {
		return Report{}, err
	}
	if err := enterAlone(ctx, p.from, p.moves...); err != nil {
		return Report{}, err
	}
	p.entered = true
	for _, note := range notes {
		p.event("note: %s", note)
	}
	p.event("begun")
	return p.report(p.advance(ctx))
}

// PromotePlan is what [Promote] would do.
type PromotePlan struct {
	Source, Target string
	Leave, Stay    shards.Set
	Problems       []string // why it cannot be done; empty if nothing is known against it
	Notes          []string // what one should know
}

// PlanPromotion makes all checks of [Promote], and changes nothing but the ledger of moves, which it makes where it is missing.
func PlanPromotion(ctx context.Context, cfg Config) (PromotePlan, error) {
	p, err := newPromotion(cfg)
	if err != nil {
		return PromotePlan{}, err
	}
	defer p.close(ctx)
	plan := PromotePlan{Source: p.Source, Target: p.Target, Leave: p.leaving, Stay: shards.SetOf(p.staying(p.cfg.Map)...)}
	if err := p.connect(ctx); err != nil {
		return plan, err
	}
	plan.Notes, err = p.check(ctx)
	if problems := (*CheckError)(nil); errors.As(err, &problems) {
		plan.Problems, err = problems.Problems, nil
	}
	return plan, err
}

func newPromotion(cfg Config) (*promotion, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var moves []Move
	for n := range cfg.Shards.All() {
		m := cfg.newMove(n)
		m.Step, m.Split, m.Back, m.Offline = Cutover, m.ID, nil, false
		if len(moves) > 0 {
			m.Split = moves[0].Split
		}
		moves = append(moves, m)
	}
	if len(moves) == 0 {
		return nil, errors.New("move: Config.Shards is empty: expected the shards that leave their host")
	}
	p, err := promotionOf(cfg, moves)
	if err == nil && p.home(cfg.Map) != p.Source {
		err = fmt.Errorf("shards %s are on %s: expected all on one host", p.leaving.Short(namesLimit), p.home(cfg.Map))
	}
	return p, err
}

func promotionOf(cfg Config, moves []Move) (*promotion, error) {
	p := &promotion{job: job{Move: moves[0], cfg: cfg}, moves: moves}
	var leaving []shards.Number
	for _, m := range moves {
		leaving = append(leaving, m.Shard)
	}
	p.leaving = shards.SetOf(leaving...)
	var err error
	if p.src, err = cfg.host(p.Source); err == nil {
		p.dst, err = cfg.host(p.Target)
	}
	return p, err
}

// connect opens a session to each of the hosts that has none, or whose session was lost.
func (p *promotion) connect(ctx context.Context) (err error) {
	if err := p.connectSource(ctx); err != nil {
		return err
	}
	if p.to == nil || p.to.IsClosed() {
		if p.to, err = session.Open(ctx, p.dst, anyRole); err != nil {
			return err
		}
	}
	return p.limitLockTimeout(ctx)
}

// connectSource opens a session to the source. Moves that are in the ledger are then this session's: what a lost one has sent has ended.
func (p *promotion) connectSource(ctx context.Context) error {
	if p.from != nil && !p.from.IsClosed() {
		return nil
	}
	from, err := session.Open(ctx, p.src)
	if err != nil {
		return err
	}
	if p.entered {
		if err = install(ctx, from); err == nil {
			err = claim(ctx, from, p.ids()...)
		}
	}
	if err != nil { // a session that has not taken them up must not be used
		session.Close(ctx, from)
		return err
	}
	p.from = from
	return nil
}

// anyRole opens a session to a standby, too, whatever target_session_attrs says.
func anyRole(c *pgx.ConnConfig) { c.ValidateConnect = nil }

// staying returns the shards of the source that do not leave.
func (p *promotion) staying(m *shards.Map) []shards.Number {
	return slices.DeleteFunc(slices.Clone(m.NumbersOn(p.Source)), p.leaving.Has)
}

// report is the end of a promotion: all shards end alike.
func (p *promotion) report(err error) (Report, error) {
	if err == nil {
		return Report{Done: p.leaving}, nil
	}
	r, partial := Report{}, &shards.PartialError{}
	if p.entered && p.Outcome == UnderWay {
		r.Resumable = p.leaving
	}
	for _, m := range p.moves {
		partial.Failed = append(partial.Failed, &shards.ShardError{Shard: m.Shard, Schema: m.Schema, Host: m.Source, Err: err})
	}
	return r, partial
}

func (p *promotion) ids() (ids []string) {
	for _, m := range p.moves {
		ids = append(ids, m.ID)
	}
	return ids
}

// setSteps writes the step that all shards are about to begin, if the ledger has each at one of some steps, with this mover.
func (p *promotion) setSteps(ctx context.Context, step Step, before ...Step) error {
	const query = `
		UPDATE kiloshard.moves SET step = $2, stepped = clock_timestamp(), error = NULL
		WHERE split = $1 AND side = 'source' AND outcome IS NULL AND step = ANY ($3) AND mover = pg_backend_pid()`
	err := pgx.BeginFunc(ctx, p.from, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, query, p.Split, step, before)
		if err == nil && int(tag.RowsAffected()) != len(p.moves) {
			err = p.lostClaim()
		}
		return err
	})
	if err != nil {
		return err
	}
	p.Step = step
	p.event("begun")
	return nil
}

// advance takes a promotion from its step to its end. From the promotion on nobody is served until the map has changed, so an
// interrupt has to wait.
func (p *promotion) advance(ctx context.Context) error {
	if p.Step == Aborting {
		return p.abort(ctx)
	}
	if p.Step == Cutover {
		if err := p.cutover(ctx); err != nil {
			return p.takenBack(ctx, err)
		}
	}
	working, cancel := anyway(ctx)
	defer cancel()
	if p.Step == Promoting {
		p.hold()
		err := p.promote(working)
		if errors.Is(err, errStandbyLate) {
			return p.takenBack(ctx, err)
		}
		if err == nil {
			err = p.switchMap(working)
		}
		if err == nil {
			err = p.switched(working)
		}
		if err != nil {
			return p.noted(ctx, err)
		}
		p.letGo()
	}
	return p.noted(ctx, p.finish(ctx))
}

// takenBack aborts because of an error, which it returns.
func (p *promotion) takenBack(ctx context.Context, err error) error {
	ctx, cancel := anyway(ctx)
	defer cancel()
	if undone := p.abort(ctx); undone != nil {
		return errors.Join(err, fmt.Errorf("taking that back: %w", undone))
	}
	return err
}

// promoteLimit is how long a standby may take to be promoted, and the hosts and the store to change over.
const promoteLimit = 2 * time.Minute

// anyway returns a context for what is to be done although ctx may have ended.
func anyway(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), promoteLimit)
}
