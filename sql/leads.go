package sql

import "time"

// Lead is how far load alone can bring a sequence ahead of the clock. One that leads by more has seen the clock step back.
const Lead = windowShort * time.Millisecond

// LeadsBatch is the maximum number of schemas for one query of [Leads]: its transaction locks each sequence that it
// reads, and a server has room for a few thousand locks.
const LeadsBatch = 500

// Leads returns a query for the sequences of the given schemas that lead the clock by more than [Lead], farthest first,
// and its arguments. Its rows are the schema, the sequence, and by how many seconds it leads (float8). Run it on a
// primary; a standby returns no rows. It uses the epoch and the bits of p; TimeBits must not be 0.
func Leads(p Params, schemas []string) (query string, args []any) {
	data := engineData{Params: p}
	return render("leads.sql", nil), []any{schemas, p.Epoch, p.SequenceBits, data.MaxSequenceValue(), float64(windowShort)}
}
