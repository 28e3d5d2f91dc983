package migrate

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// PlanReport is what [Up] would do.
type PlanReport struct {
	Target   int32        // the version that is to be reached
	UpToDate shards.Set   // stand there, or above
	Groups   []PlanGroup  // what is to move, from the lowest version up
	Files    []PlanFile   // what any shard is to run, in order
	Sample   *SampleShard // for which Files are rendered; nil when there are none

	Changed []ChangedFile // what shards have in another form than the directory's
}

// PlanGroup is the shards that are to go from one version to another.
type PlanGroup struct {
	From, To int32
	Shards   shards.Set
	Hosts    []PlanHost // in the order of the map
	Files    []string   // the names of the files that each of these shards is to run, in order
}

// PlanHost is the shards of a group that live on one host.
type PlanHost struct {
	Host   string
	Shards shards.Set
}

// PlanFile is a file as the sample shard is to run it.
type PlanFile struct {
	Version  int32
	Name     string
	SQL      string // its up part, rendered, without white space around it
	Line     int    // the 1-based line of the file on which SQL begins
	Rendered bool   // SQL comes out of a template, so its lines need not be those of the file
	Shards   int    // how many shards are to run it
}

// SampleShard is a shard of the lowest version.
type SampleShard struct {
	Shard  shards.Number
	Schema string
	Host   string
}

// Plan asks every host, by one message each, where its shards stand, and returns what [Up] with the
// same config would do. It runs nothing, takes no advisory lock and changes nothing.
//
// The sample shard is the last one of those at the lowest version, for a file that names a shard by
// mistake mostly names the first.
//
// The error is a [shards.PartialError] when Up would refuse to run anything, with all that is in its
// way: hosts that do not answer, shards that are not created, not readable or ahead, and a file that
// cannot be run. The report then tells of the other shards. Any other error tells what is wrong with the config or with
// the files themselves, before any host was asked.
func Plan(ctx context.Context, cfg Config) (PlanReport, error) {
	r, err := newRun(cfg, up, func(newest int32) (int32, error) { return upTarget(cfg.To, newest) })
	if err != nil {
		return PlanReport{}, err
	}
	defer r.sessions.close(ctx)
	plan := fanout.Plan(r.cfg.Map, r.cfg.Shards)
	surveys := look(ctx, r.sessions, r.cfg.Map, r.directory, plan)
	hosts, failed := troubles(r.cfg.Map, surveys, r.directory.newest())
	hosts = interruptedOr(ctx, hosts)

	readable := make([]fanout.Work, 0, len(plan))
	for _, host := range surveys {
		work := fanout.Work{Host: host.Host}
		for _, n := range host.Shards {
			if at, ok := host.standings[n]; ok && at.trouble(r.directory.newest()) == nil {
				work.Shards = append(work.Shards, n)
			}
		}
		readable = append(readable, work)
		maps.Copy(r.standings, host.standings)
		r.changes = mergeChanges(r.changes, host.changed)
	}
	work, upToDate := r.pending(readable)
	report := PlanReport{Target: r.target, UpToDate: upToDate, Groups: r.groups(work), Changed: r.changes}
	if len(work) > 0 {
		if err := r.planFiles(&report); err != nil {
			hosts = append(hosts, err)
		} else if err := r.checkFiles(work); err != nil {
			hosts = append(hosts, err)
		}
	}
	if len(hosts) == 0 && len(failed) == 0 {
		return report, nil
	}
	return report, refusal(without(r.cfg.Shards, upToDate), failed, hosts...)
}

// groups returns the work by where the shards stand.
func (r *run) groups(work []fanout.Work) []PlanGroup {
	byVersion := map[int32]*PlanGroup{}
	for _, w := range work {
		byHost := map[int32][]shards.Number{}
		for _, n := range w.Shards {
			version := r.standings[n].version
			byHost[version] = append(byHost[version], n)
		}
		for version, numbers := range byHost {
			g := byVersion[version]
			if g == nil {
				g = &PlanGroup{From: version, To: r.target, Files: r.directory.names[version:r.target]}
				byVersion[version] = g
			}
			set := shards.SetOf(numbers...)
			g.Hosts = append(g.Hosts, PlanHost{Host: w.Host.Name, Shards: set})
			g.Shards = shards.SetOfRanges(append(g.Shards.Ranges(), set.Ranges()...)...)
		}
	}
	groups := make([]PlanGroup, 0, len(byVersion))
	for _, g := range byVersion {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b PlanGroup) int { return cmp.Compare(a.From, b.From) })
	return groups
}

// planFiles adds the files that the report's groups are to run.
func (r *run) planFiles(report *PlanReport) error {
	lowest := report.Groups[0]
	ranges := lowest.Shards.Ranges()
	n := ranges[len(ranges)-1].Last
	files, err := r.directory.pending(n, lowest.From, r.target, up)
	if err != nil {
		return err
	}
	report.Sample = &SampleShard{Shard: n, Schema: r.cfg.Map.Schema(n), Host: r.cfg.Map.Host(n).Name}
	for _, f := range files {
		planned := PlanFile{Version: f.number, Name: f.name, SQL: f.sql, Line: f.firstLine, Rendered: f.rendered}
		for _, g := range report.Groups {
			if g.From < f.number {
				planned.Shards += g.Shards.Len()
			}
		}
		report.Files = append(report.Files, planned)
	}
	return nil
}
