package wayback

import (
	"context"
	"errors"

	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Keep brings one way back up to date. It returns why it has closed it, empty if it has not.
func Keep(ctx context.Context, conns *hosts.Conns, m ledger.Move) (closed string, err error) {
	source, err := conns.Get(ctx, m.Source)
	if err != nil {
		return "", err
	}
	target, err := conns.Get(ctx, m.Target)
	if err != nil {
		return "", err
	}
	why, err := Lost(ctx, target, m)
	if err != nil {
		return "", err
	}
	if why == "" {
		err = Changes(source, target, m).Drain(ctx)
		var refused *changes.Error
		if !errors.As(err, &refused) {
			return "", ignoring(err, ErrClosed, changes.ErrInUse)
		}
		why = refused.Error()
	}
	if err := Close(ctx, source, target, m, why); err != nil {
		return "", ignoring(err, ErrClosed)
	}
	return why, nil
}

// CloseLost closes a way back if it cannot be used any more. It returns why, empty if it has not; a dry run only returns why it would.
func CloseLost(ctx context.Context, conns *hosts.Conns, m ledger.Move, dryRun bool) (why string, err error) {
	target, err := conns.Get(ctx, m.Target)
	if err != nil {
		return "", err
	}
	if why, err = Lost(ctx, target, m); err != nil || why == "" || dryRun {
		return why, err
	}
	source, err := conns.GetWithLedger(ctx, m.Source)
	if err != nil {
		return "", err
	}
	if err := Close(ctx, source, target, m, why); err != nil {
		return "", ignoring(err, ErrClosed)
	}
	return why, nil
}

// ignoring returns an error, nil if it is a harmless one.
func ignoring(err error, harmless ...error) error {
	for _, h := range harmless {
		if errors.Is(err, h) {
			return nil
		}
	}
	return err
}

// Open returns the moves whose way back is open, and on which no shard is going back.
func Open(all []ledger.Move) (open []ledger.Move) {
	returning := map[string]bool{}
	for _, m := range all {
		if m.Outcome == ledger.UnderWay && m.Returns != "" {
			returning[m.Returns] = true
		}
	}
	for _, m := range all {
		if !m.BackUntil().IsZero() && !returning[m.ID] {
			open = append(open, m)
		}
	}
	return open
}
