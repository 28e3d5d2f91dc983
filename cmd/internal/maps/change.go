package maps

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// changeFlags are those of the commands that change the map.
type changeFlags struct {
	by, why   string
	from      int
	moved     bool
	keysMoved bool
	dryRun    bool
	replace   bool
	yes       bool // with replace

	edited bool // in an editor, which is no flag
}

func (f *changeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.by, "by", "", "who makes the change (default user@machine)")
	flags.StringVar(&f.why, "why", "", "why, for the history")
	flags.IntVar(&f.from, "from", -1, "the version to be replaced, if that is the present one (default the version in the file, or the present one)")
	flags.Lookup("from").DefValue = "0" // so that the help does not tell it
	flags.BoolVar(&f.moved, "moved", false, "shards whose home changes are on their new host already, and on the old one no more: it is looked up")
	flags.BoolVar(&f.keysMoved, "keys-moved", false, "let keys change their shards: stop their writers and move their rows by hand first; nothing checks that")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
}

// changedMap is what the commands that change the map print as JSON.
type changedMap struct {
	cli.MapVersion
	From    int         `json:"from"` // the version that was replaced
	Changes []mapChange `json:"changes"`
	DryRun  bool        `json:"dry_run,omitempty"`
}

// change makes written the map that follows now, and prints the difference. Where there was no map now has none.
func change(ctx context.Context, a *cli.App, s *session, now mapstore.Entry, written shards.Config, f changeFlags) error {
	next := mapstore.Change{Config: s.toBe(written, f.edited), By: f.by, Why: f.why, KeysMoved: f.keysMoved, NoShards: f.replace}
	if next.By == "" {
		next.By = cli.Whoami()
	}
	result := changedMap{MapVersion: cli.MapVersion{By: next.By, Why: next.Why}, Changes: []mapChange{}, DryRun: f.dryRun}
	if s.local.Store.Kind != shards.StoreFile && s.local.Store.Kind != "" {
		if err := mapstore.CheckTrust(s.local.Store, next.Config); err != nil { // before anybody connects anywhere
			return err
		}
	}
	if now.Map != nil {
		result.From, result.Version = now.Map.Version(), now.Map.Version()+1
		next.Config.Version = now.Map.Version()
		var err error
		if result.Changes, err = mayFollow(ctx, a, now.Map, next, f); err != nil {
			return err
		}
		if len(result.Changes) == 0 {
			if f.keysMoved && !f.dryRun {
				err := recordKeys(ctx, a, s, now)
				a.AuditMap(ctx)
				if err != nil {
					return err
				}
			}
			return a.Print(changedMap{MapVersion: cli.VersionOf(now), From: result.From, Changes: result.Changes}, func() {
				a.Say("nothing is changed, it is still %s", cli.VersionOf(now))
			})
		}
	} else {
		result.Version = next.Config.Version + 1
		if _, err := next.Config.Map(); err != nil {
			return err
		}
	}
	if f.dryRun {
		if err := mapstore.Check(s.local, s.opts, now, next); err != nil {
			return err
		}
	} else {
		made, err := s.Swap(ctx, result.From, next)
		if err != nil {
			return s.explain(ctx, err)
		}
		result.MapVersion = cli.VersionOf(made)
		if f.keysMoved {
			err = recordKeys(ctx, a, s, made)
		}
		a.AuditMap(ctx)
		if err != nil {
			a.Warn("%s, in %s", result.MapVersion, s.where)
			return err
		}
	}
	return a.Print(result, func() {
		if now.Map != nil {
			sayChanges(a, result.Changes)
		}
		if f.dryRun {
			a.Say("nothing is changed: this would be version %d, in %s", result.Version, s.where)
			return
		}
		a.Say("%s, in %s", result.MapVersion, s.where)
	})
}

// recordKeys has the hosts know that rows were moved to where the map's strategy has their keys.
func recordKeys(ctx context.Context, a *cli.App, s *session, made mapstore.Entry) error {
	m, err := connectable(a, made.Map)
	if err == nil {
		err = provision.RecordKeys(ctx, m.WithCredentials(cli.PasswordCommand(s.local)))
	}
	if err != nil {
		return cli.Partly(fmt.Errorf("the map is changed; its hosts have to know: run map edit --keys-moved with it again: %w", err))
	}
	return nil
}

// mayFollow returns what is new in the next map, and an error if it must not follow.
func mayFollow(ctx context.Context, a *cli.App, now *shards.Map, next mapstore.Change, f changeFlags) ([]mapChange, error) {
	m, err := next.Config.Map()
	if err != nil {
		return nil, err
	}
	if f.replace {
		return changesBetween(now, m), checkUnused(ctx, a, now, m, f)
	}
	err = shards.CheckChange(now, m)
	var refused *shards.ChangeError
	switch {
	case errors.As(err, &refused) && refused.MovesKeys && f.keysMoved:
	case errors.As(err, &refused) && refused.MovesKeys:
		return nil, fmt.Errorf("%w; nothing moves the rows of single keys: --keys-moved is for keys without rows, or after their writers were stopped and their rows moved by hand", err)
	case err != nil:
		return nil, err
	}
	changes := changesBetween(now, m)
	return changes, checkHomes(ctx, a, now, m, f)
}

// explain says who made the conflicting change, when and why.
func (s *session) explain(ctx context.Context, err error) error {
	var conflict *mapstore.ConflictError
	if !errors.As(err, &conflict) {
		if errors.Is(err, mapstore.ErrOutcomeUnknown) {
			return fmt.Errorf("%w; see kiloshard map history", err)
		}
		return err
	}
	if now, loadErr := s.Load(ctx); loadErr == nil {
		return fmt.Errorf("%w: %s", err, cli.VersionOf(now))
	}
	return err
}

// conflict is the error of a change to a version that is not the present one.
func (s *session) conflict(now mapstore.Entry, wanted int) error {
	return fmt.Errorf("%w: %s", &mapstore.ConflictError{Wanted: wanted, Found: now.Map.Version()}, cli.VersionOf(now))
}

// isFrom checks that the present version is that which the flag says, if it says one.
func (s *session) isFrom(now mapstore.Entry, f changeFlags) error {
	if f.from >= 0 && f.from != now.Map.Version() {
		return s.conflict(now, f.from)
	}
	return nil
}

// base checks that the change of a file is one of the present version: that which the flag says, else that in the file.
func (s *session) base(now mapstore.Entry, written shards.Config, f changeFlags) error {
	version := now.Map.Version()
	switch {
	case written.Version > version:
		return cli.Usagef("version %d is in the file, while %s is at version %d: services that follow it would see the version go back; expected an empty store, or a file of version %d",
			written.Version, s.where, version, version)
	case f.from < 0 && written.Version > 0 && written.Version != version:
		return s.conflict(now, written.Version)
	}
	return s.isFrom(now, f)
}
