package migrate

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// PlanReport is what [Up] would do.
type PlanReport struct {
	Target   int32        // the version to reach
	UpToDate shards.Set   // at the target or past it
	Groups   []PlanGroup  // shards to migrate, from the lowest version up
	Files    []PlanFile   // all files to run in any shard, in order
	Earlier  []PlanFile   // on the way up, the files that the sample shard has run, without Shards
	Sample   *SampleShard // the shard that Files are rendered for; nil without Files

	Templates []TemplateRisk // of Files

	Changed []ChangedFile // files that shards ran in another form than the directory's
}

// PlanGroup is the shards to migrate from one version to another.
type PlanGroup struct {
	From, To int32
	Shards   shards.Set
	Hosts    []PlanHost // in the order of the map
	Files    []string   // the names of the files to run in each of these shards, in order
}

// PlanHost is the shards of a group on one host.
type PlanHost struct {
	Host   string
	Shards shards.Set
}

// PlanFile is a file as rendered for the sample shard.
type PlanFile struct {
	Version  int32
	Name     string
	SQL      string // its up or down part, rendered, without surrounding white space
	Line     int    // the 1-based line of the file on which SQL begins
	Rendered bool   // SQL was rendered from a template, so its lines may differ from the file's
	Shards   int    // number of shards to run it in
	Shared   bool   // it runs once on each host, and not in the shards, which only pass it

	// MarkAbove says that the file's down part runs outside a transaction because of the mark in its up part. tern itself
	// would run it in one.
	MarkAbove bool
}

// SampleShard is one of the shards farthest from the target.
type SampleShard struct {
	Shard  shards.Number `json:"shard"`
	Schema string        `json:"schema"`
	Host   string        `json:"host"`
}

// Plan asks every host, by one message each, for the versions of its shards, and returns what [Up] with the same config
// would do, or [Down] with Config.Down. It runs no file, takes no advisory lock and changes nothing.
//
// The sample shard is the last one of those farthest from the target, since a file that names a shard by mistake usually
// names the first.
//
// If Up would refuse to run, the error is a [shards.PartialError] with all the reasons: hosts that do not answer, shards
// that are not created, unreadable or ahead, a file that has the number of another one, and a file that cannot run. The
// report then covers the other shards. Any other error is about the config or the files; then no host was contacted.
func Plan(ctx context.Context, cfg Config) (PlanReport, error) {
	way := files.Up
	if cfg.Down {
		way = files.Down
	}
	r, err := newRun(cfg, way, targetOf(cfg))
	if err != nil {
		return PlanReport{}, err
	}
	defer r.sessions.Close(ctx)
	plan := fanout.Plan(r.cfg.Map, r.cfg.Shards)
	inventories := look(ctx, r.sessions, r.cfg.Map, r.directory, plan, nil)
	hosts, failed := troubles(r.cfg.Map, inventories, r.directory.Newest())
	hosts = interruptedOr(ctx, hosts)

	readable := make([]fanout.Work, 0, len(plan))
	for _, host := range inventories {
		work := fanout.Work{Host: host.Host}
		for _, n := range host.Shards {
			if at, ok := host.shardVersions[n]; ok && at.trouble(r.directory.Newest()) == nil {
				work.Shards = append(work.Shards, n)
			}
		}
		readable = append(readable, work)
		maps.Copy(r.shardVersions, host.shardVersions)
		r.changes = mergeChanges(r.changes, host.changed)
	}
	work, upToDate, _ := r.pending(readable)
	hosts = append(hosts, r.replaced()...)
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

// groups returns the work grouped by version.
func (r *run) groups(work []fanout.Work) []PlanGroup {
	byVersion := map[int32]*PlanGroup{}
	for _, w := range work {
		byHost := map[int32][]shards.Number{}
		for _, n := range w.Shards {
			version := r.shardVersions[n].version
			byHost[version] = append(byHost[version], n)
		}
		for version, numbers := range byHost {
			g := byVersion[version]
			if g == nil {
				g = &PlanGroup{From: version, To: r.target, Files: r.directory.Between(version, r.target)}
				byVersion[version] = g
			}
			set := shards.SetOf(numbers...)
			g.Hosts = append(g.Hosts, PlanHost{Host: w.Host.Name, Shards: set})
			g.Shards = g.Shards.Union(set)
		}
	}
	groups := make([]PlanGroup, 0, len(byVersion))
	for _, g := range byVersion {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b PlanGroup) int { return cmp.Compare(a.From, b.From) })
	return groups
}

// planFiles adds the files of all groups to the report.
func (r *run) planFiles(report *PlanReport) error {
	farthest := report.Groups[0] // from the target
	if r.way == files.Down {
		farthest = report.Groups[len(report.Groups)-1]
	}
	ranges := farthest.Shards.Ranges()
	n := ranges[len(ranges)-1].Last
	pending, err := r.directory.Pending(n, farthest.From, r.target, r.way)
	if err != nil {
		return err
	}
	if report.Templates, err = r.templateRisks(n, farthest.From, pending); err != nil {
		return err
	}
	report.Sample = &SampleShard{Shard: n, Schema: r.cfg.Map.Schema(n), Host: r.cfg.Map.Host(n).Name}
	if r.way == files.Up && farthest.From > 0 {
		earlier, err := r.directory.Pending(n, 0, farthest.From, files.Up)
		if err != nil {
			return err
		}
		for _, f := range earlier {
			report.Earlier = append(report.Earlier, PlanFile{Version: f.Number, Name: f.Name, SQL: f.SQL, Line: f.FirstLine, Rendered: f.Rendered})
		}
	}
	shared := r.sharedUp()
	for _, f := range pending {
		planned := PlanFile{Version: f.Number, Name: f.Name, SQL: f.SQL, Line: f.FirstLine, Rendered: f.Rendered, MarkAbove: r.markAbove(n, f.Number)}
		for _, g := range report.Groups {
			if (g.From < f.Number) == (r.way == files.Up) {
				planned.Shards += g.Shards.Len()
			}
		}
		if i := slices.IndexFunc(shared, func(s files.File) bool { return s.Number == f.Number }); i >= 0 {
			planned.Shared, planned.SQL = true, shared[i].SQL
		}
		report.Files = append(report.Files, planned)
	}
	return nil
}

// markAbove reports whether a version's down part runs outside a transaction because of the mark in its up part.
func (r *run) markAbove(n shards.Number, version int32) bool {
	pending, err := r.directory.Pending(n, version, version-1, files.Down)
	return err == nil && pending[0].MarkAbove
}
