package sql

import "time"

// Lead is how far ahead of the clock a sequence may be by load alone. One that leads by more has seen the clock step back.
const Lead = windowShort * time.Millisecond

// LeadsBatch is for how many schemas [Leads] may be asked at once: a transaction holds a lock on each sequence that it
// looks at, of which a server has room for a few thousand.
const LeadsBatch = 500

// Leads returns a query for the sequences of the given schemas that lead the clock by more than [Lead], farthest first,
// and its arguments. Its rows are the schema, the sequence, and by how many seconds it leads (float8). It must run on a
// primary; a standby answers with no rows. Of p it takes the epoch and the bits, of which TimeBits must not be 0.
func Leads(p Params, schemas []string) (query string, args []any) {
	data := engineData{Params: p}
	return render("leads.sql", nil), []any{schemas, p.Epoch, p.SequenceBits, data.MaxSequenceValue(), float64(windowShort)}
}
