package structure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// Without is what [Compare] leaves out.
type Without struct {
	Identities   map[string]string // replica identities that the move has changed, by table
	Keys         bool              // keys and indexes, and what is about them
	UnloggedKeys bool              // what the cutover makes: see [MakeUnloggedKeys]
}

// Compare compares the structures of a shard on two hosts, in sessions of its own, and returns the differences: "- …" for what only the source has, "+ …" for
// what only the target has.
func Compare(ctx context.Context, source, target shards.Host, m *shards.Map, n shards.Number, without Without) ([]string, error) {
	var structures [2]drift.Structure
	group, reading := errgroup.WithContext(ctx)
	for i, host := range []shards.Host{source, target} {
		group.Go(func() error {
			conn, err := drift.Connect(reading, host)
			if err != nil {
				return err
			}
			defer session.Close(reading, conn)
			found, err := drift.Read(reading, conn, m, n)
			if err != nil {
				return err
			}
			structures[i] = withoutIdentities(found[n], without.Identities)
			if without.Keys {
				structures[i] = slices.DeleteFunc(structures[i], drift.Line.OfKeys)
			}
			if without.UnloggedKeys {
				structures[i], err = withoutUnloggedKeys(reading, conn, m.Schema(n), structures[i])
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if structures[0].Equal(structures[1]) {
		return nil, nil
	}
	return drift.Differences(structures[0], structures[1]), nil
}

// Hash returns a hash of a shard's structure on a host.
func Hash(ctx context.Context, host shards.Host, m *shards.Map, n shards.Number) (string, error) {
	conn, err := drift.Connect(ctx, host)
	if err != nil {
		return "", err
	}
	defer session.Close(ctx, conn)
	found, err := drift.Read(ctx, conn, m, n)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, l := range found[n] {
		lines = append(lines, l.Key+"\n"+l.Text)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// withoutIdentities leaves the replica identities that the move has changed out of a structure.
func withoutIdentities(s drift.Structure, changed map[string]string) drift.Structure {
	var kept drift.Structure
	for _, l := range s {
		table, is := strings.CutPrefix(l.Key, "replica identity of {{.schema}}.")
		table = strings.ReplaceAll(strings.Trim(drift.Render(table, "", 0), `"`), `""`, `"`)
		if _, ours := changed[table]; !is || !ours {
			kept = append(kept, l)
		}
	}
	return kept
}
