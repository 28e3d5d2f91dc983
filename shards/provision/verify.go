package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
	"github.com/kiloshard/kiloshard/shards/provision/internal/verify"
)

// Kind is the kind of a [Difference], in a few words.
type Kind string

// The kinds of [Difference].
const (
	KindMissing   Kind = difference.Missing   // "missing": the shard is on no host
	KindMisplaced Kind = difference.Misplaced // "misplaced": it is on another host than the map says
	KindTwice     Kind = difference.Twice     // "on two hosts": it is on its host, and on another one as well
	KindFunction  Kind = difference.Function  // "function": a function is missing or differs; or a column's default calls another shard's
	KindSequence  Kind = difference.Sequence  // "sequence": a sequence for IDs is missing, belongs to another shard, has a cache or the like
	KindColumn    Kind = difference.Column    // "column": a column that gets IDs has a type that cannot hold them
	KindLead      Kind = difference.Lead      // "lead": a sequence leads the clock: a failover that loses WAL could make IDs again
	KindFenced    Kind = difference.Fenced    // "fenced": its move stopped at a step where no host serves it
	KindStray     Kind = difference.Stray     // "stray schema": a schema has the name of a shard that is not in the map
	KindGenerator Kind = difference.Generator // "generator": parts of a generator are missing, or make other numbers than the map says
	KindDirectory Kind = difference.Directory // "directory": the tables of the strategy are missing, or have other columns
	KindEngine    Kind = difference.Engine    // "engine": the helper schema is missing, or has another epoch, layout or cluster
	KindOld       Kind = difference.Old       // "old version": another release installed it; kiloshard upgrade installs the present version
	KindRights    Kind = difference.Rights    // "rights": a role that has rights on most shards has none on this one
	KindExtension Kind = difference.Extension // "extension": it is missing, in another schema or version, or in a shard
	KindForeign   Kind = difference.Foreign   // "foreign": another role owns it, added a trigger or the like to it, or may do so
	KindEntities  Kind = difference.Entities  // "entities": the entities of package router/entities, or an index of theirs, have another definition than in most shards
)

// Difference is one difference between a host and the map.
type Difference struct {
	Kind   Kind   `json:"kind"`
	Host   string `json:"host"`
	Schema string `json:"schema"`
	Found  string `json:"found"`
	Want   string `json:"expected"`
}

// String returns the place, the finding and the expectation.
func (d Difference) String() string {
	return fmt.Sprintf("%s on %s: %s: %s; expected %s", d.Schema, d.Host, d.Kind, d.Found, d.Want)
}

// Verify compares every shard on every host with the map. It returns the differences sorted by
// schema and host. If hosts do not answer, the error joins a [shards.HostError] for each, and the
// differences are those of the other hosts and their shards.
func Verify(ctx context.Context, m *shards.Map) ([]Difference, error) {
	s := hosts.ConnectReachable(ctx, m.Hosts()) // a host of another cluster is a difference
	defer s.Close(ctx)
	if err := s.CheckDistinct(ctx); err != nil {
		return nil, err
	}
	w := inventory.For(m)
	all, err := w.ReadAll(ctx, s, true)
	if err != nil {
		return nil, err
	}
	lost, err := findLost(ctx, s, m, all)
	if err != nil {
		return nil, err
	}
	differences, err := findEntities(ctx, s, m)
	if err != nil {
		return nil, err
	}
	for i, list := range verify.Compare(verify.Input{Wanted: w, Hosts: all, Unreached: s.Unreached(), Lost: lost}) {
		for _, d := range list {
			differences = append(differences, Difference{Kind(d.Kind), all[i].Name, d.Schema, d.Found, d.Want})
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Found, b.Found))
	})
	return slices.Compact(differences), errors.Join(s.Unreached()...) // a default may use one object twice
}
