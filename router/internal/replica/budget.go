package replica

import "sync/atomic"

const (
	// budgetShare of all reads that may be sent twice are, at most, and budgetBurst at once.
	budgetShare = 0.1
	budgetBurst = 16
	budgetCost  = 1000 // tokens
)

// Budget is what may be spent on sending reads twice: one in ten, and 16 more at once.
type Budget struct{ tokens atomic.Int64 }

// Earn is for each read that may be sent twice.
func (b *Budget) Earn() {
	const earned = budgetShare * budgetCost
	if b.tokens.Load() < budgetBurst*budgetCost {
		b.tokens.Add(int64(earned))
	}
}

// Spend reports whether one may be sent twice now.
func (b *Budget) Spend() bool {
	if b.tokens.Add(-budgetCost) >= 0 {
		return true
	}
	b.Refund()
	return false
}

// Refund takes back a Spend for what was not sent after all.
func (b *Budget) Refund() { b.tokens.Add(budgetCost) }
