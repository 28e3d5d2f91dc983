package ledger

import "time"

// WayBack is how a shard that has moved can go back without a copy. Before the cutover the target gets a publication of the shard's
// tables, and a slot. Writes on the target after the switch are applied to the old schema, which stays behind its fence: nobody
// can use it until the shard has gone back.
type WayBack struct {
	For       time.Duration `json:"for"`       // from the fence on, in nanoseconds
	WAL       int64         `json:"wal"`       // bytes that the slot may keep
	LSN       string        `json:"lsn"`       // on the target: the old schema has what was committed before
	Timeline  int           `json:"timeline"`  // of the LSN
	Structure string        `json:"structure"` // a hash of the shard's structure at the fence
	Closed    string        `json:"closed"`    // why there is no way back any more; empty while there is
}

// BackUntil returns until when a move can be rolled back. It is zero for one that cannot be, or not any more.
func (m Move) BackUntil() time.Time {
	if m.Outcome != Moved || m.Fenced == nil || m.Back == nil || m.Back.Closed != "" {
		return time.Time{}
	}
	return m.Fenced.Add(m.Back.For)
}

// BackSlot is the name of the publication and the slot of the way back.
func (m Move) BackSlot() string { return m.Slot() + "_back" }
