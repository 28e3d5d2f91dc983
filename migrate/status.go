package migrate

import (
	"context"
	"embed"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// StatusReport holds the versions of shards.
type StatusReport struct {
	Files   []string      // the names of the migration files, that of version 1 first
	Hosts   []HostStatus  // in the order of the map
	Changed []ChangedFile // files that shards ran in another form than the directory's

	Unwritten []string // those of Files whose up part has no SQL yet
}

// HostStatus holds the versions of the shards of one host.
type HostStatus struct {
	Host       string
	Versions   []VersionStatus      // from the lowest version up
	NotCreated shards.Set           // their schemas do not exist
	Failed     []*shards.ShardError // their versions are unreadable or above the newest file's
	Err        error                // why the host did not answer; the other fields are empty then
}

// VersionStatus is the shards of one host that have the same version.
type VersionStatus struct {
	Version int32      `json:"version"`
	Pending int        `json:"pending"` // number of files above it
	Shards  shards.Set `json:"shards"`
}

// Pending returns the shards that have a file to run.
func (r StatusReport) Pending() shards.Set {
	var pending []shards.Range
	for _, host := range r.Hosts {
		for _, v := range host.Versions {
			if v.Pending > 0 {
				pending = append(pending, v.Shards.Ranges()...)
			}
		}
	}
	return shards.SetOfRanges(pending...)
}

// Status asks every host, by one message each, for the versions of its shards. It changes nothing, and takes no lock except
// those of a query; it waits for one 30 s, or for lock_timeout if set. A shard without a version table is at version 0.
//
// The report is complete even with an error. That is a [shards.PartialError]: its causes are the hosts that do not answer;
// failed are the shards whose version is unreadable or above the newest file's, which is [ErrAhead]. Shards that are not
// created are not an error here.
//
// Config.Files may be nil: nothing is then pending, changed or ahead, and the versions are still reported.
func Status(ctx context.Context, cfg Config) (StatusReport, error) {
	withFiles := cfg.Files != nil
	if !withFiles {
		cfg.Files = embed.FS{}
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return StatusReport{}, err
	}
	d, highest := &files.Directory{Checksums: []string{""}}, int32(math.MaxInt32)
	if withFiles {
		if d, err = files.Read(cfg.Map, cfg.Files, first(cfg.Shards), cfg.TemplateEnv, cfg.Logger); err != nil {
			return StatusReport{}, err
		}
		highest = d.Newest()
	}
	sessions := &session.Pool{Logger: cfg.Logger}
	defer sessions.Close(ctx)
	inventories := look(ctx, sessions, cfg.Map, d, fanout.Plan(cfg.Map, cfg.Shards), nil)

	report := StatusReport{Files: d.Names}
	for i, name := range d.Names {
		if d.Unwritten[i] {
			report.Unwritten = append(report.Unwritten, name)
		}
	}
	partial := &shards.PartialError{}
	for _, inventory := range inventories {
		host := hostStatus(cfg.Map, inventory, d.Newest(), highest)
		report.Hosts = append(report.Hosts, host)
		if withFiles {
			report.Changed = mergeChanges(report.Changed, inventory.changed)
		}
		if host.Err != nil {
			partial.Causes = append(partial.Causes, host.Err)
			partial.NotAttempted = partial.NotAttempted.Union(shards.SetOf(inventory.Shards...))
		}
		partial.Failed = append(partial.Failed, host.Failed...)
	}
	if len(partial.Causes) == 0 && len(partial.Failed) == 0 {
		return report, nil
	}
	partial.Failed = sortShards(partial.Failed)
	partial.Done = without(without(cfg.Shards, partial.NotAttempted), numbersOf(partial.Failed))
	return report, partial
}

// hostStatus returns what an inventory says of a host. Shards above version highest are ahead.
func hostStatus(m *shards.Map, s inventory, newest, highest int32) HostStatus {
	status := HostStatus{Host: s.Host.Name, Err: s.err}
	_, failed := troubles(m, []inventory{s}, highest)
	var missing []shards.Number
	for _, f := range failed {
		if errors.Is(f, ErrNotCreated) {
			missing = append(missing, f.Shard)
		} else {
			status.Failed = append(status.Failed, f)
		}
	}
	status.NotCreated = shards.SetOf(missing...)

	byVersion := map[int32][]shards.Number{}
	for n, at := range s.shardVersions {
		if at.err == nil {
			byVersion[at.version] = append(byVersion[at.version], n)
		}
	}
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		status.Versions = append(status.Versions, VersionStatus{
			Version: version, Pending: int(max(0, newest-version)), Shards: shards.SetOf(byVersion[version]...),
		})
	}
	return status
}
