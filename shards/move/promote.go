package move

import (
	"context"
	"errors"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/promote"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Promote splits a host by the promotion of a physical standby: cfg.Shards leave the host that all of them are on, and cfg.To, a host of
// the map without shards, is that standby. Nothing is copied:
//
//  1. cutover: the shards are fenced on the host, as in a move, and the standby replays that. Past [PromoteConfig.MaxPause] the fences come
//     down, and the mover retries.
//  2. promote: the standby is promoted. What has stayed gets other names there, the fences come down, and the map is changed.
//  3. switched: what has stayed is fenced there, so that a client that writes to it reads where it is. The old schemas stay, on both
//     hosts, until [Clean].
//
// All shards are in the ledger of the host that they leave. What fails before the promotion is taken back. From then on, and after
// a mover has died, the error is a [shards.PartialError]: [Resume] goes on; [Abort] takes back what was not promoted.
func Promote(ctx context.Context, cfg PromoteConfig) (Report, error) {
	p, err := newPromotion(cfg)
	if err != nil {
		return Report{}, err
	}
	defer p.Close(ctx)
	if err := p.Connect(ctx); err != nil {
		return Report{}, err
	}
	switch problems, notes, err := p.Check(ctx); {
	case err != nil:
		return Report{}, err
	case len(problems) > 0:
		return Report{}, &CheckError{problems}
	default:
		err = p.Begin(ctx, notes)
		if err != nil && !p.IsEntered() {
			return Report{}, err
		}
		return promoted(p, err)
	}
}

// PromotePlan is what [Promote] would do.
type PromotePlan struct {
	Source, Target string
	Leave, Stay    shards.Set
	Problems       []string // why it cannot be done; empty if there are none
	Notes          []string // what an operator should know
}

// PlanPromotion makes all checks of [Promote], and changes nothing but the ledger of moves, which it makes where it is missing.
func PlanPromotion(ctx context.Context, cfg PromoteConfig) (PromotePlan, error) {
	p, err := newPromotion(cfg)
	if err != nil {
		return PromotePlan{}, err
	}
	defer p.Close(ctx)
	plan := PromotePlan{Source: p.Source, Target: p.Target, Leave: p.Leaving(), Stay: shards.SetOf(p.Staying(cfg.Map)...)}
	if err := p.Connect(ctx); err != nil {
		return plan, err
	}
	plan.Problems, plan.Notes, err = p.Check(ctx)
	return plan, err
}

func newPromotion(promotion PromoteConfig) (*promote.Promotion, error) {
	cfg, err := promotion.config()
	if err != nil {
		return nil, err
	}
	var moves []ledger.Move
	for n := range cfg.Shards.All() {
		m := RunConfig{Config: cfg, To: promotion.To}.newMove(n)
		m.Step, m.Split = ledger.Cutover, m.ID
		if len(moves) > 0 {
			m.Split = moves[0].Split
		}
		moves = append(moves, m)
	}
	if len(moves) == 0 {
		return nil, errors.New("move: PromoteConfig.Shards is empty: expected the shards that leave their host")
	}
	p, err := promote.New(cfg.promotion(), moves)
	if err == nil {
		err = p.OnOneHost()
	}
	return p, err
}

// promoted is the report of a promotion: all shards end alike.
func promoted(p *promote.Promotion, err error) (Report, error) {
	if err == nil {
		return Report{Done: p.Leaving()}, nil
	}
	r, partial := Report{}, &shards.PartialError{}
	if p.IsUnderWay() {
		r.Resumable = p.Leaving()
	}
	for _, m := range p.Moves() {
		partial.Failed = append(partial.Failed, &shards.ShardError{Shard: m.Shard, Schema: m.Schema, Host: m.Source, Err: err})
	}
	return r, partial
}

// promotionsUnderWay returns the moves of each promotion under way of which one is wanted.
func promotionsUnderWay(all []ledger.Move, wanted func(ledger.Move) bool) (splits [][]ledger.Move) {
	by := map[string][]ledger.Move{}
	for _, m := range all {
		if m.Split != "" && m.Outcome == ledger.UnderWay {
			by[m.Split] = append(by[m.Split], m)
		}
	}
	for _, moves := range by {
		if slices.ContainsFunc(moves, wanted) {
			splits = append(splits, moves)
		}
	}
	return splits
}

// takeUp calls do for a promotion that is in the ledger.
func takeUp(ctx context.Context, cfg Config, moves []ledger.Move, ask asked, do func(*promote.Promotion, context.Context) error) (Report, error) {
	p, err := promote.InLedger(cfg.promotion(), moves)
	defer func() { p.Close(ctx) }()
	if err == nil {
		err = p.TakeUp(ctx)
	}
	switch {
	case err != nil:
	case p.Outcome == ledger.UnderWay:
		err = do(p, ctx)
	default:
		err = ask.endedAs(p.Outcome)
	}
	return promoted(p, err)
}
