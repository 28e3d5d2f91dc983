// Package promote splits a host by the promotion of its physical standby: some shards leave the host at once, without a copy.
//
//   - cutover: the shards are fenced on the host, in transactions of some shards each, and the standby replays that.
//   - promote: the standby is promoted. What has stayed gets other names there, the fences come down, and the map is changed.
//   - switched: what has stayed is fenced there.
//
// All shards are in the ledger of the host that they leave, at the same step. Before the promotion an error takes everything back.
package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/hold"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/placing"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// Config is what a promotion needs to know. All fields but Hold and Events are set.
type Config struct {
	Map         *shards.Map
	Store       mapstore.Store
	By          string        // for the ledgers and the history of the map
	MaxPause    time.Duration // the most that writers wait in one try
	MaxLag      time.Duration // how far behind the standby may be when a try begins
	LockTimeout time.Duration // of the fences
	Retry       time.Duration // how long tries may take; 0 for no limit
	Hold        func() (release func())
	Events      func(progress.Event)
}

// Promotion is the work on all shards that leave a host at once. One goroutine uses it.
type Promotion struct {
	ledger.Move // of the first shard. The others differ from it in their IDs and shards

	cfg      Config
	moves    []ledger.Move
	leaving  shards.Set
	src, dst shards.Host
	from, to *pgx.Conn   // nil before they are needed
	mapped   *shards.Map // as it was before the fences; nil for those of another mover
	entered  bool        // the ledger has the moves
	hold     hold.Hold
}

// New returns the promotion of some moves, all from one host to its standby. The caller closes it.
func New(cfg Config, moves []ledger.Move) (*Promotion, error) {
	p := &Promotion{Move: moves[0], cfg: cfg, moves: moves, hold: hold.Hold{Begin: cfg.Hold}}
	var leaving []shards.Number
	for _, m := range moves {
		leaving = append(leaving, m.Shard)
	}
	p.leaving = shards.SetOf(leaving...)
	var err error
	if p.src, err = hosts.Host(cfg.Map, p.Source); err == nil {
		p.dst, err = hosts.Host(cfg.Map, p.Target)
	}
	return p, err
}

// OnOneHost returns an error unless the map has all shards on the source.
func (p *Promotion) OnOneHost() error {
	if home := p.change().Home(p.cfg.Map); home != p.Source {
		return fmt.Errorf("shards %s are on %s: expected all on one host", p.leaving.Short(placing.NamesLimit), home)
	}
	return nil
}

// InLedger returns the promotion of moves that the source's ledger has. The caller closes it.
func InLedger(cfg Config, moves []ledger.Move) (*Promotion, error) {
	p, err := New(cfg, moves)
	p.entered = true
	return p, err
}

// Close ends the sessions, and the hold.
func (p *Promotion) Close(ctx context.Context) {
	p.hold.Release()
	session.Close(ctx, p.from, p.to)
}

// Leaving returns the shards that leave.
func (p *Promotion) Leaving() shards.Set { return p.leaving }

// Moves returns their moves.
func (p *Promotion) Moves() []ledger.Move { return p.moves }

// IsEntered reports whether the ledger has the moves.
func (p *Promotion) IsEntered() bool { return p.entered }

// IsUnderWay reports whether the ledger has the moves, and they have not ended.
func (p *Promotion) IsUnderWay() bool { return p.entered && p.Outcome == ledger.UnderWay }

// Staying returns the shards of the source that do not leave.
func (p *Promotion) Staying(m *shards.Map) []shards.Number {
	return slices.DeleteFunc(slices.Clone(m.NumbersOn(p.Source)), p.leaving.Has)
}

// Begin enters the moves into the source's ledger and takes the promotion to its end. notes are those of [Promotion.Check].
func (p *Promotion) Begin(ctx context.Context, notes []string) error {
	if err := claim.EnterAll(ctx, p.from, p.moves...); err != nil {
		return err
	}
	p.entered = true
	for _, note := range notes {
		p.eventf(progress.Note, "note: %s", note)
	}
	p.event(progress.Begun)
	return p.advance(ctx)
}

// TakeUp claims the moves, which the ledger has, and reads them again: another mover may have continued or ended them.
func (p *Promotion) TakeUp(ctx context.Context) error {
	if err := p.connectSource(ctx); err != nil {
		return err
	}
	moves, err := p.ReadPromotion(ctx, p.from, p.cfg.Map)
	if err != nil {
		return err
	}
	p.moves, p.Move = moves, moves[0]
	for _, m := range moves {
		if m.Step == ledger.Aborting || m.Step == ledger.Cutover && p.Step == ledger.Fenced {
			p.Step = m.Step
		}
	}
	if p.Step == ledger.Fenced { // the mover died after the last of the fences
		p.Step = ledger.Cutover
	}
	return nil
}

// Resume continues a promotion, unless the map has the shards on the target and the source's ledger does not: the source has lost their fences in a
// failover of its own, and takes writes that nobody will see.
func (p *Promotion) Resume(ctx context.Context) error {
	change := p.change()
	now, err := change.Newest(ctx)
	if err != nil {
		return err
	}
	if home := change.Home(now); home != p.Source && !slices.Contains([]ledger.Step{ledger.Promoting, ledger.Switched}, p.Step) {
		return p.noted(ctx, fmt.Errorf("version %d of the map puts %s on %s, and the ledger of %s has them at step %s: %[4]s may have lost their fences; "+
			"expected it to serve none of them", now.Version(), change.Names(), home, p.Source, p.Step))
	}
	return p.advance(ctx)
}

// event reports an event whose text is its kind.
func (p *Promotion) event(kind progress.Kind) { p.eventf(kind, "%s", kind) }

func (p *Promotion) eventf(kind progress.Kind, format string, args ...any) {
	if p.cfg.Events != nil {
		p.cfg.Events(progress.Event{
			Shard: p.Shard, Split: p.leaving, From: p.Source, To: p.Target, Step: p.Step, Kind: kind, What: fmt.Sprintf(format, args...),
		})
	}
}

func (p *Promotion) limits() wait.Limits {
	return wait.Limits{Lock: p.cfg.LockTimeout, Retry: p.cfg.Retry, Report: func(format string, args ...any) { p.eventf(progress.Waiting, format, args...) }}
}

// change is the change of the map.
func (p *Promotion) change() placing.Change {
	return placing.Change{
		Store: p.cfg.Store, By: p.cfg.By, Shards: p.leaving, Source: p.Source, Target: p.Target,
		Waits: p.limits().Report, Failed: func(err error) { p.eventf(progress.StoreFailed, "%v", err) },
	}
}

// Connect opens a session to each of the hosts that has none, or whose session was lost.
func (p *Promotion) Connect(ctx context.Context) (err error) {
	if err := p.connectSource(ctx); err != nil {
		return err
	}
	if p.to == nil || p.to.IsClosed() {
		if p.to, err = session.Open(ctx, p.dst, anyRole); err != nil {
			return err
		}
	}
	p.cfg.LockTimeout, err = locks.BelowDeadlock(ctx, p.from, p.cfg.LockTimeout)
	return err
}

// connectSource opens a session to the source, and makes it the mover of moves that are in the ledger: then what a lost session has sent has ended.
func (p *Promotion) connectSource(ctx context.Context) error {
	if p.from != nil && !p.from.IsClosed() {
		return nil
	}
	from, err := session.Open(ctx, p.src)
	if err != nil {
		return err
	}
	if p.entered {
		if err = ledger.Install(ctx, from); err == nil {
			err = claim.Take(ctx, from, p.ids()...)
		}
	}
	if err != nil { // a session that is not the mover must not be used
		session.Close(ctx, from)
		return err
	}
	p.from = from
	return nil
}

// anyRole ignores target_session_attrs, so that a session may lead to a standby.
func anyRole(c *pgx.ConnConfig) { c.ValidateConnect = nil }

func (p *Promotion) ids() (ids []string) {
	for _, m := range p.moves {
		ids = append(ids, m.ID)
	}
	return ids
}

// setSteps writes the step that all shards are about to begin, if the ledger has each at one of some steps, with this mover.
func (p *Promotion) setSteps(ctx context.Context, step ledger.Step, before ...ledger.Step) error {
	switch held, err := claim.SetStep(ctx, p.from, p.ids(), step, before...); {
	case err != nil:
		return err
	case !held:
		return claim.Lost(p.Move, p.change().Names())
	}
	p.Step = step
	p.event(progress.Begun)
	return nil
}

// confirm returns nil if the ledger of the source has all moves at their step, with this mover: see [placing.Change.Switch].
func (p *Promotion) confirm(ctx context.Context) error {
	if err := p.connectSource(ctx); err != nil {
		return fmt.Errorf("the ledger of %s: %w", p.Source, err)
	}
	switch count, err := claim.Held(ctx, p.from, p.Move); {
	case err != nil:
		return fmt.Errorf("the ledger of %s: %w", p.Source, err)
	case count != p.leaving.Len():
		return &placing.FinalError{Err: claim.Lost(p.Move, p.change().Names())}
	}
	return nil
}

// noted keeps an error for move status, and returns it.
func (p *Promotion) noted(ctx context.Context, err error) error {
	if err != nil {
		claim.SetError(ctx, p.from, p.Move, err)
	}
	return err
}

// advance takes a promotion from its step to its end. From the promotion on no host serves the shards until the map has changed, so an
// interrupt has to wait.
func (p *Promotion) advance(ctx context.Context) error {
	if p.Step == ledger.Aborting {
		return p.abort(ctx)
	}
	if p.Step == ledger.Cutover {
		if err := p.cutover(ctx); err != nil {
			return p.takenBack(ctx, err)
		}
	}
	working, cancel := detached(ctx)
	defer cancel()
	if p.Step == ledger.Promoting {
		p.hold.Take()
		err := p.promote(working)
		if errors.Is(err, errStandbyLate) {
			return p.takenBack(ctx, err)
		}
		if err == nil {
			if err = p.change().Switch(working, p.mapped, p.confirm); err == nil {
				p.event(progress.Switched)
				err = p.switched(working)
			}
		}
		if err != nil {
			return p.noted(ctx, err)
		}
		p.hold.Release()
	}
	return p.noted(ctx, p.finish(ctx))
}

// takenBack aborts because of an error, which it returns.
func (p *Promotion) takenBack(ctx context.Context, err error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	if undone := p.abort(ctx); undone != nil {
		return errors.Join(err, fmt.Errorf("taking that back: %w", undone))
	}
	return err
}

// limit is how long a standby may take to be promoted, and the hosts and the store to change over.
const limit = 2 * time.Minute

// detached returns a context for work that goes on after ctx has ended.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
