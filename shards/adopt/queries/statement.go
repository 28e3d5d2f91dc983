package queries

import (
	"cmp"
	"slices"
)

// Class is where a statement goes.
type Class string

// The classes, the worst first.
const (
	Change     Class = "change"
	CrossShard Class = "cross-shard"
	Unread     Class = "unread"
	FanOut     Class = "fan-out"
	ByChain    Class = "chain"
	ByKey      Class = "key"
	Elsewhere  Class = "elsewhere"
)

// Classes are all classes, the worst first.
var Classes = []Class{Change, CrossShard, Unread, FanOut, ByChain, ByKey, Elsewhere}

// Statement is one statement, or one transaction, and what becomes of it.
type Statement struct {
	Class      Class   `json:"class"`
	Why        string  `json:"why"`
	Calls      int64   `json:"calls"`
	Seconds    float64 `json:"seconds"` // of all calls
	SQL        string  `json:"sql"`     // with $1, $2, … in place of values, and no text of a string
	ChangesKey bool    `json:"changes_key,omitempty"`
}

// Sort puts the worst statements first, and of a class those that take the most time.
func Sort(all []Statement) {
	slices.SortStableFunc(all, func(a, b Statement) int {
		return cmp.Or(slices.Index(Classes, a.Class)-slices.Index(Classes, b.Class), cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.SQL, b.SQL))
	})
}
