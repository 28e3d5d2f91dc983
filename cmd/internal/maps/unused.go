package maps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// unusedLimit is how long a host may take to say whether it has shards.
const unusedLimit = 10 * time.Second

// checkUnused refuses to put another map in the place of one of which a host has shards, or may have.
func checkUnused(ctx context.Context, a *cli.App, now, next *shards.Map, f changeFlags) error {
	if was, is := now.Config().Cluster, next.Config().Cluster; was != is {
		return &shards.ChangeError{Field: "cluster", From: was, To: is, Why: "this is the map of another cluster"}
	}
	now, err := connectable(a, now)
	if err != nil {
		return err
	}
	for _, host := range now.Hosts() {
		limited, cancel := context.WithTimeout(ctx, unusedLimit)
		found, err := provision.Present(limited, now, []shards.Host{host})
		cancel()
		if err != nil {
			if !f.yes || ctx.Err() != nil {
				return errors.Join(fmt.Errorf("--replace: %w", err), errors.New("it is not known whether it has shards: expected all hosts of the present map to answer, or --yes for those that never had any"))
			}
			continue
		}
		if there := found[0].Whole.Union(found[0].Partly); there.Len() > 0 {
			return cli.Usagef("--replace: %s (%s) on %s: expected none of the present map's on any host", cli.Count(there.Len(), "shard"), there, host.Name)
		}
	}
	return nil
}
