package migrations

import (
	"context"
	"errors"
	"strconv"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// How --to is explained.
const (
	upUsage   = "the version to reach, or +1 for the next one above where the shards stand (default the newest file's)"
	downUsage = "the version to go back to, 0 for none, or -1 for the one below where the shards stand"
)

// target reads --to: a version, or with a sign one that is so many above or below the highest at which any of the shards
// stands. Without one it is 0, which stands for the newest file's on the way up.
func target(ctx context.Context, cfg migrate.Config, text string) (int32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	relative := text[0] == '+' || text[0] == '-'
	if err != nil || n == 0 && relative {
		return 0, cli.Usagef("--to %q: expected a version such as 7, or one from where the shards stand, such as +1 or -1", text)
	}
	switch {
	case relative && (n < 0) != cfg.Down && cfg.Down:
		return 0, cli.Usagef("--to %s: expected a version below where the shards stand, such as -1", text)
	case relative && n < 0 && !cfg.Down:
		return 0, cli.Usagef("--to %s: expected a version above where the shards stand, such as +1; migrate down goes back", text)
	case !relative && n == 0 && !cfg.Down:
		return 0, cli.Usagef("--to 0: expected a version from 1 on; migrate down goes back")
	case !relative:
		return int32(n), nil
	}
	highest, err := highestVersion(ctx, cfg)
	if err != nil {
		return 0, err
	}
	if highest+int32(n) < 0 {
		return 0, cli.Usagef("--to %s: the shards stand at %d at most, expected a version from 0 on", text, highest)
	}
	return highest + int32(n), nil
}

// highestVersion returns the highest version at which any of the shards stands.
func highestVersion(ctx context.Context, cfg migrate.Config) (int32, error) {
	status, err := migrate.Status(ctx, cfg)
	var partial *shards.PartialError
	if errors.As(err, &partial) {
		return 0, err
	}
	if err != nil {
		return 0, cli.Usage(err)
	}
	var highest int32
	for _, host := range status.Hosts {
		for _, v := range host.Versions {
			highest = max(highest, v.Version)
		}
	}
	return highest, nil
}
