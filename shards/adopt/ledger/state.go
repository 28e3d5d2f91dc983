package ledger

import (
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Schema is the schema of the ledger, and Role the role that owns the functions which mirror rows.
const (
	Schema = "kiloshard_adopt"
	Role   = "kiloshard_adopt"
)

// Mark is the comment of the views and functions of gate 1: commands replace, move and drop no others.
const Mark = "made by kiloshard adopt views"

// Application is the application_name of the sessions of an adoption.
const Application = "kiloshard adopt"

// Gate is how far an adoption is.
type Gate string

// The gates, in their order.
const (
	GateViews    Gate = "views"    // shards are views over the old tables, or are about to be
	GateClosed   Gate = "closed"   // also, the old tables refuse writes without a shard's path
	GateTables   Gate = "tables"   // all shards have tables of their own
	GateFinished Gate = "finished" // nothing is written to the old tables any more
)

// Stage is what the rows of one shard are in.
type Stage string

// The stages, in their order.
const (
	StageViews   Stage = "views"   // the old tables
	StageCopying Stage = "copying" // the old tables; changes are mirrored to hidden tables of the shard
	StageTables  Stage = "tables"  // tables of the shard; changes are mirrored to the old ones
)

// Adoption is the one row of kiloshard_adopt.adoption.
type Adoption struct {
	Gate      Gate
	Shards    int    // how many there are
	Strategy  string // the SQL expression for the shard of a key, which is called key in it
	File      string // the text of adopt.yaml
	Structure string // of the old tables; see [Structure]
	Started   time.Time
}

// Shard is a row of kiloshard_adopt.shards.
type Shard struct {
	Shard   shards.Number
	Stage   Stage
	Views   string // a fingerprint of the statements that made its views; empty before
	Changed time.Time
}

// State is what the ledger says.
type State struct {
	Adoption
	All []Shard // by number
}

// At returns the shards at a stage.
func (s *State) At(stage Stage) shards.Set {
	var found []shards.Number
	for _, one := range s.All {
		if one.Stage == stage {
			found = append(found, one.Shard)
		}
	}
	return shards.SetOf(found...)
}

// ChangedError says that the ledger was not as a command had found it.
type ChangedError struct{ What, Found, Expected string }

// Error names what was found and what was expected.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s is %s in the ledger; expected %s: another command has changed it", e.What, e.Found, e.Expected)
}
