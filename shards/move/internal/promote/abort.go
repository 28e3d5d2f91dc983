package promote

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// abort takes a promotion back, as long as the standby is one.
func (p *Promotion) abort(ctx context.Context) error {
	working := ctx
	switch p.Step {
	case ledger.Switched, ledger.Finished:
		return fmt.Errorf("%s serves the shards already: expected move resume, and then moves back to %s", p.Target, p.Source)
	case ledger.Promoting: // no host serves the shards, so an interrupt has to wait
		p.hold.Take()
		var cancel context.CancelFunc
		working, cancel = detached(ctx)
		defer cancel()
		if err := p.notPromoted(working); err != nil {
			return err
		}
		if err := p.change().Stay(working, "is aborted"); err != nil {
			return err
		}
	}
	if err := p.unfenceAll(working, ledger.Aborting); err != nil {
		return err
	}
	if p.Step != ledger.Aborting {
		if err := p.setSteps(ctx, ledger.Aborting, ledger.Cutover, ledger.Fenced, ledger.Promoting, ledger.Aborting); err != nil {
			return err
		}
	}
	for _, m := range p.moves {
		if err := session.Run(ctx, p.from, fence.Drop(m.FenceSchema())); err != nil {
			return err
		}
	}
	if err := replicate.DropMarkers(ctx, p.from, p.Split); err != nil {
		return err
	}
	return p.end(ctx, ledger.Aborted, p.from)
}

// Abort takes a promotion back, unless the map has a shard on the target.
func (p *Promotion) Abort(ctx context.Context) error {
	change := p.change()
	now, err := change.Newest(ctx)
	if err == nil {
		err = change.NotOnTarget(now)
	}
	if err == nil && (p.Step == ledger.Cutover || p.Step == ledger.Aborting) { // otherwise abort does so, once the standby is known to be one
		err = change.Stay(ctx, "is aborted")
	}
	if err == nil {
		err = p.abort(ctx)
	}
	return p.noted(ctx, err)
}

// settleDelay is the time after which a statement that a killed mover has sent is under way.
const settleDelay = time.Second

// notPromoted returns an error if the standby was promoted. A standby that does not answer may have been promoted: it has no shard that it could serve
// then, but cannot be used as a standby.
func (p *Promotion) notPromoted(ctx context.Context) error {
	err := p.Connect(ctx)
	if err == nil { // a killed mover's last statement may still arrive
		err = wait.Sleep(ctx, settleDelay)
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
		p.eventf(progress.Note, "note: %s does not answer (%v): if it was promoted, rebuild it before it is used", p.Target, err)
	case !standby:
		return fmt.Errorf("%s is promoted already: expected move resume", p.Target)
	}
	return nil
}
