package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// Kind is the kind of a [Difference].
type Kind string

// The kinds of [Difference].
const (
	KindMissing   Kind = "missing"      // the shard is on no host
	KindMisplaced Kind = "misplaced"    // it is on another host than the map says
	KindTwice     Kind = "on two hosts" // it is on its host, and on another one as well
	KindFunction  Kind = "function"     // next_id() or another function is missing or differs from the map; or a column's default calls another shard's
	KindSequence  Kind = "sequence"     // its sequence, or that of a column's default, is missing, belongs to another shard, has a cache or the like
	KindColumn    Kind = "column"       // a column that gets IDs is of a type that cannot hold them
	KindLead      Kind = "lead"         // a sequence leads the clock: a failover that loses WAL could make IDs again
	KindFenced    Kind = "fenced"       // its move stopped at a step where no host serves it
	KindStray     Kind = "stray schema" // a schema has the name of a shard that is not in the map
	KindGenerator Kind = "generator"    // functions or the sequence of a generator are missing, or make other numbers than the map says
	KindDirectory Kind = "directory"    // the tables of the strategy are missing, or have other columns
	KindEngine    Kind = "engine"       // the helper schema is missing, or has another epoch, layout or cluster
	KindOld       Kind = "old version"  // an older release installed it; kiloshard upgrade installs the present version
	KindRights    Kind = "rights"       // a role that has rights on most shards has none on this one
	KindExtension Kind = "extension"    // an extension is missing, or in another schema or version; or it is in a shard
	KindForeign   Kind = "foreign"      // another role owns it, added a trigger or the like to it, or may do so
)

// Difference is one difference between a host and the map.
type Difference struct {
	Kind   Kind   `json:"kind"`
	Host   string `json:"host"`
	Schema string `json:"schema"`
	Found  string `json:"found"`
	Want   string `json:"expected"`
}

// String returns the place, what was found and what was expected.
func (d Difference) String() string {
	return fmt.Sprintf("%s on %s: %s: %s; expected %s", d.Schema, d.Host, d.Kind, d.Found, d.Want)
}

// Verify compares every shard on every host with the map. It returns the differences sorted by
// schema and host. If hosts do not answer, the error joins a [shards.HostError] for each, and the
// differences are those of the other hosts and their shards.
func Verify(ctx context.Context, m *shards.Map) ([]Difference, error) {
	sessions := connectReachable(ctx, m.Hosts()) // another cluster is reported as a difference
	defer sessions.close(ctx)
	if err := sessions.checkDistinct(ctx); err != nil {
		return nil, err
	}
	inventories, err := sessions.takeAll(ctx, m, true)
	if err != nil {
		return nil, err
	}
	v := &verification{m: m, inventories: inventories, present: presentOf(m), grants: grantsOf(m, inventories), unreached: sessions.unreached}
	if v.lost, err = sessions.lost(ctx, m, inventories); err != nil {
		return nil, err
	}
	for i, inv := range inventories {
		if v.unreached[i] != nil {
			continue
		}
		for _, f := range inv.foreign {
			v.differ(KindForeign, inv, f.Schema, f.What, f.Expected)
		}
		v.engine(inv)
		v.extensions(inv)
		v.generators(inv)
		for name := range inv.schemas {
			v.stray(inv, name)
		}
		v.defaults(inv)
		v.columns(inv)
		for _, l := range inv.leads {
			v.differ(KindLead, inv, l.Schema, fmt.Sprintf("%s leads the clock by %s", l.Sequence, l.By.Round(time.Millisecond)),
				fmt.Sprintf("at most %s; the lead shrinks with time. After a failover during the lead: kiloshard id advance", sql.Lead))
		}
	}
	for n := range m.All().All() {
		v.shard(n)
	}
	slices.SortFunc(v.differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Found, b.Found))
	})
	return slices.Compact(v.differences), errors.Join(v.unreached...) // a default may depend on one thing twice
}

type verification struct {
	m           *shards.Map
	inventories []*inventory
	present     *present
	grants      []sql.Grant // of most shards
	lost        shards.Set  // missing, but listed in a ledger
	unreached   []error     // by host; nil for one that answers
	differences []Difference
}

func (v *verification) differ(kind Kind, inv *inventory, schema, found, want string) {
	v.differences = append(v.differences, Difference{Kind: kind, Host: inv.host.Name, Schema: schema, Found: found, Want: want})
}

// engine compares the helper schema: its settings, its version, and the functions themselves.
func (v *verification) engine(inv *inventory) {
	p := params(v.m)
	script, _ := sql.Engine(p)
	if !inv.usable() {
		return
	}
	if inv.settings == nil {
		v.differ(KindEngine, inv, "kiloshard", "not installed", "the helper schema; kiloshard create installs it")
		return
	}
	s := *inv.settings
	type field struct{ name, found, want string }
	fields := []field{
		{"cluster", s.Cluster, p.Cluster},
		{"schema_prefix", s.SchemaPrefix, p.SchemaPrefix},
		{"layout", usable(s.TimeBits, s.ShardBits, s.TypeBits, s.SequenceBits), usable(p.TimeBits, p.ShardBits, p.TypeBits, p.SequenceBits)},
	}
	if p.TimeBits > 0 { // without a time the epoch means nothing
		fields = append(fields, field{"epoch", s.Epoch.UTC().Format(time.RFC3339Nano), p.Epoch.UTC().Format(time.RFC3339Nano)})
	}
	differences := len(v.differences)
	for _, f := range fields {
		if f.found != f.want {
			v.differ(KindEngine, inv, "kiloshard", f.name+" "+f.found, f.want)
		}
	}
	if len(v.differences) > differences {
		return // the functions differ for that reason, and upgrade does not change them
	}
	if connect.CheckKeys(s.Keys, v.present.keys) != nil {
		v.differ(KindEngine, inv, helper, "strategy "+s.Keys, v.present.keys)
	}
	v.ledger(inv)
	v.rights(inv, helper)
	v.owners(inv)
	if v.present.engineState(inv) == old {
		v.old(inv, helper, "the helper schema", s.Engine, v.present.engine)
		return
	}
	if s.Keys == "" {
		v.differ(KindOld, inv, helper, "the strategy is not recorded", "that of the map; kiloshard upgrade records it")
	}
	for _, want := range sql.Functions(script) {
		v.function(KindEngine, inv, "kiloshard", want)
	}
}

// usable returns a layout without the sign bit.
func usable(time, shard, typ, sequence int) string {
	return shards.Layout{Time: time, Shard: shard, Type: typ, Sequence: sequence}.String() + " usable bits"
}

// repair says how to restore a function that was changed.
const repair = "; kiloshard upgrade --repair restores it"

// function compares a function of a shard or the engine with the script's definition.
func (v *verification) function(kind Kind, inv *inventory, schema string, want sql.Function) {
	v.compareFunction(kind, inv, schema, inv.schemas[schema].functions, want)
}

// compareFunction compares one of the functions found with the script's definition.
func (v *verification) compareFunction(kind Kind, inv *inventory, schema string, functions map[functionKey]function, want sql.Function) {
	name := fmt.Sprintf("%s with %d parameters", want.Name, want.Args)
	if want.Args == 1 {
		name = want.Name + " with 1 parameter"
	}
	found, ok := functions[functionKey{want.Name, want.Args}]
	switch {
	case !ok:
		v.differ(kind, inv, schema, name+" is missing", "the function; kiloshard create creates it")
	case found.Definition != want.Definition:
		v.differ(kind, inv, schema, name+" is "+found.Definition, want.Definition+repair)
	case found.Public != want.Public:
		v.differ(kind, inv, schema, fmt.Sprintf("%s: PUBLIC may call it: %t", name, found.Public), fmt.Sprint(want.Public)+repair)
	case found.Owner != "":
		v.differ(kind, inv, schema, name+" belongs to role "+found.Owner, "the schema's owner")
	case found.Body != want.Body:
		v.differ(kind, inv, schema, name+" is "+oneLine(found.Body), oneLine(want.Body)+repair)
	}
}

// shard compares one shard on all hosts.
func (v *verification) shard(n shards.Number) {
	if v.unreached[v.m.HostIndex(n)] != nil {
		return
	}
	name := v.m.Schema(n)
	home := v.inventories[v.m.HostIndex(n)]
	if found, fenced := home.fenced[name]; fenced {
		if found != "" {
			v.differ(KindFenced, home, name, found, "a running mover; kiloshard move resume, or move abort")
		}
		return
	}
	_, atHome := home.schemas[name]
	elsewhere := false
	for _, inv := range v.inventories {
		if _, ok := inv.schemas[name]; !ok || inv == home {
			continue
		}
		elsewhere = true
		kind, want := KindTwice, "only on "+home.host.Name+"; "+copyAdvice(inv.host.Name)
		if !atHome {
			kind, want = KindMisplaced, "on "+home.host.Name+"; correct the map's placement, or move the shard"
		}
		v.differ(kind, inv, name, "is here", want)
		if !atHome { // what a second copy contains does not matter
			v.parts(inv, n)
		}
	}
	switch {
	case atHome:
		v.parts(home, n)
	case !elsewhere && errors.Join(v.unreached...) != nil:
		v.differ(KindMissing, home, name, "no such schema", "the shard, unless it is on a host that does not answer")
	case v.lost.Has(n):
		v.differ(KindMissing, home, name, "no such schema, though the ledger says that it ran migrations", "the shard, restored; kiloshard create --empty creates it again, without rows")
	case !elsewhere:
		v.differ(KindMissing, home, name, "no such schema", "the shard; kiloshard create creates it")
	}
}

// parts compares the sequence and the functions of a shard on one host.
func (v *verification) parts(inv *inventory, n shards.Number) {
	name := v.m.Schema(n)
	if found := inv.found[name]; !found.ours {
		v.differ(KindForeign, inv, name, "it has no objects of a shard; it belongs to role "+found.owner, "the shard, or no such schema")
		return
	}
	isOld := v.oldFunctions(inv, name, "next_id", 0, v.present.shard)
	for _, want := range sql.Functions(sql.Shard(params(v.m), int(n), name)) {
		if !isOld || v.lacks(inv, name, want) {
			v.function(KindFunction, inv, name, want)
		}
	}
	v.generatorsIn(inv, n)
	v.keyTables(inv, n)
	v.rights(inv, name)
	want := v.sequence()
	switch found := inv.schemas[name].sequence; {
	case found == nil:
		v.differ(KindSequence, inv, name, "next_id_seq is missing", "the sequence; kiloshard create creates it")
	case *found != want:
		v.differ(KindSequence, inv, name, "next_id_seq has "+found.String(), want.String())
	}
	if wrong := inv.schemas[name].rights; wrong != "" {
		v.differ(KindSequence, inv, name, "next_id_seq: "+wrong, "the schema's owner, no column, and USAGE alone for others")
	}
}

// stray reports a schema that has the name of a shard that is not in the map.
func (v *verification) stray(inv *inventory, name string) {
	if name == "kiloshard" {
		return
	}
	if n, ok := v.m.NumberOf(name); !ok || !v.m.Has(n) {
		v.differ(KindStray, inv, name, "a schema named like a shard", fmt.Sprintf("shards 0 to %d of five digits", v.m.Len()-1))
	}
}

// oneLine returns the text of a function's body on one line, shortened to what tells it apart.
func oneLine(body string) string {
	const most = 160
	line := strings.Join(strings.Fields(body), " ")
	if len(line) > most {
		line = line[:most] + "…"
	}
	return line
}
