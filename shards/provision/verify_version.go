package provision

import "github.com/kiloshard/kiloshard/sql"

// old notes that something is there in another version than the present one.
func (v *verification) old(inv *inventory, schema, what, found, want string) {
	if found == "" {
		found = "none, as before versions were kept"
	}
	v.differ(KindOld, inv, schema, what+" has version "+found, want+"; kiloshard upgrade brings it")
}

// ledger compares the version of the ledger of migrations.
func (v *verification) ledger(inv *inventory) {
	if v.present.ledgerState(inv) == old {
		v.old(inv, helper, "the ledger", inv.versions[helper+".ledger"], v.present.ledger)
	}
}

// oldFunctions reports whether functions are there in another version, which is the comment of one of them, and notes that.
func (v *verification) oldFunctions(inv *inventory, schema, function string, args int, want string) bool {
	if _, ok := inv.schemas[schema].functions[functionKey{function, args}]; !ok || inv.stateOf(schema+"."+function, want) != old {
		return false
	}
	v.old(inv, schema, "the shard", inv.versions[schema+"."+function], want)
	return true
}

// lacks reports whether a schema is without a function.
func (v *verification) lacks(inv *inventory, schema string, f sql.Function) bool {
	_, ok := inv.schemas[schema].functions[functionKey{f.Name, f.Args}]
	return !ok
}
