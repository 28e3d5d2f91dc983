package ledger

// Step is where a move is. It is in the ledger before the step is begun.
type Step string

// The steps, in their order.
const (
	Prepare   Step = "prepare"  // the target's ledger gets its row
	Schema    Step = "schema"   // the shard is made on the target, without rows
	Publish   Step = "publish"  // the source gets a publication
	Copy      Step = "copy"     // rows are copied as of where a slot begins; a subscription streams later writes
	Cutover   Step = "cutover"  // writers wait for a moment, and the source refuses from then on
	Fenced    Step = "fenced"   // the source refuses; the map is about to change
	Promoting Step = "promote"  // instead of Fenced, where a standby becomes the target: it is promoted, and the map changed
	Switched  Step = "switched" // the map names the target; what the move made is removed
	Finished  Step = "finished" // the old schema is left, under another name
	Aborting  Step = "aborting" // what the move made is removed
)

// Outcome is how a move ended.
type Outcome string

// The outcomes. A move that is under way has none.
const (
	UnderWay Outcome = ""
	Moved    Outcome = "moved"    // the shard is on the target; the old schema is kept on the source
	Aborted  Outcome = "aborted"  // the shard has stayed
	Cleaned  Outcome = "cleaned"  // moved, and the old schema is dropped
	Returned Outcome = "returned" // moved, and rolled back: the source serves again
)
