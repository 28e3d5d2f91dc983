package helperschema

import (
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Wanted is the helper schema that a map wants on each host.
type Wanted struct {
	params                   sql.Params
	script                   string // creates the functions and stores the settings
	engine, ledger, strategy string // versions, and the strategy as hosts record it
}

// For returns the helper schema of a map.
func For(m *shards.Map) *Wanted {
	w := &Wanted{params: mapsql.Params(m), strategy: mapsql.Keys(m), ledger: sql.Version(sql.Ledger())}
	w.script, w.engine = sql.Engine(w.params)
	return w
}

// EngineScript returns the script that creates the functions.
func (w *Wanted) EngineScript() string { return w.script }

// KeysScript returns the script that records the strategy.
func (w *Wanted) KeysScript() string { return sql.Keys(w.params.Cluster, w.strategy) }

// EngineState compares the functions by their version. With repair, functions that were changed make them old.
func (w *Wanted) EngineState(found Found, functions catalog.Functions, repair bool) catalog.State {
	switch {
	case found.Settings == nil:
		return catalog.Missing
	case found.Settings.Engine != w.engine, repair && functions.Changed(w.script):
		return catalog.Old
	}
	return catalog.Current
}

// KeysState compares the strategy that the host records. A host with shards keeps a strategy that gives keys other
// shards: that of a newer map.
func (w *Wanted) KeysState(found Found, hasShards bool) catalog.State {
	s := found.Settings
	switch {
	case s == nil:
		return catalog.Missing
	case s.Keys == w.strategy, s.Keys != "" && shards.CheckKeys(s.Keys, w.strategy) != nil && hasShards:
		return catalog.Current
	case s.Keys == "":
		return catalog.Old
	}
	return catalog.Missing // an earlier command recorded it
}

// LedgerState compares the ledger of migrations by its version. Package migrate creates a missing one.
func (w *Wanted) LedgerState(found Found, versions catalog.Versions) catalog.State {
	if !found.Ledger {
		return catalog.Current
	}
	return versions.State(ledgerObject, w.ledger)
}

// ledgerObject is the object whose comment holds the version of the ledger.
const ledgerObject = mapsql.Helper + ".ledger"
