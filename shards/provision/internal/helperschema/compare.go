package helperschema

import (
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/difference"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// CompareSettings adds the differences of the settings, which no command changes while there are shards. If it adds
// one, it returns false: all else differs for the same reason.
func (w *Wanted) CompareSettings(l *difference.List, found Found) (same bool) {
	s, p := found.Settings, w.params
	if s == nil {
		l.Add(difference.Engine, mapsql.Helper, "not installed", "the helper schema; kiloshard create installs it")
		return false
	}
	same = true
	compare := func(name, found, want string) {
		if found != want {
			l.Add(difference.Engine, mapsql.Helper, name+" "+found, want)
			same = false
		}
	}
	compare("cluster", s.Cluster, p.Cluster)
	compare("schema_prefix", s.SchemaPrefix, p.SchemaPrefix)
	compare("layout", usableBits(s.TimeBits, s.ShardBits, s.TypeBits, s.SequenceBits),
		usableBits(p.TimeBits, p.ShardBits, p.TypeBits, p.SequenceBits))
	if p.TimeBits > 0 { // otherwise no ID depends on the epoch
		compare("epoch", s.Epoch.UTC().Format(time.RFC3339Nano), p.Epoch.UTC().Format(time.RFC3339Nano))
	}
	return same
}

// usableBits describes a layout without the sign bit.
func usableBits(time, shard, typ, sequence int) string {
	return shards.Layout{Time: time, Shard: shard, Type: typ, Sequence: sequence}.String() + " usable bits"
}

// Compare adds the differences of a helper schema whose settings are those of the map.
func (w *Wanted) Compare(l *difference.List, found Found, versions catalog.Versions, functions catalog.Functions) {
	s := found.Settings
	if connect.CheckKeys(s.Keys, w.strategy) != nil {
		l.Add(difference.Engine, mapsql.Helper, "strategy "+s.Keys, w.strategy)
	}
	if w.LedgerState(found, versions) == catalog.Old {
		l.AddOld(mapsql.Helper, "the ledger", versions[ledgerObject], w.ledger)
	}
	if w.EngineState(found, nil, false) == catalog.Old {
		l.AddOld(mapsql.Helper, "the helper schema", s.Engine, w.engine)
		return
	}
	if s.Keys == "" {
		l.Add(difference.Old, mapsql.Helper, "the strategy is not recorded", "that of the map; kiloshard upgrade records it")
	}
	for _, want := range sql.Functions(w.script) {
		functions.Compare(l, difference.Engine, mapsql.Helper, want)
	}
}
