package replica

import "sync/atomic"

const (
	// budgetShare is the largest share of reads that are sent twice, beyond a burst of budgetBurst reads.
	budgetShare = 0.1
	budgetBurst = 16
	budgetCost  = 1000 // tokens
)

// Budget limits how many reads are sent twice: one in ten, and a burst of 16.
type Budget struct{ tokens atomic.Int64 }

// Earn adds to the budget. Call it for each read that may be sent twice.
func (b *Budget) Earn() {
	const earned = budgetShare * budgetCost
	if b.tokens.Load() < budgetBurst*budgetCost {
		b.tokens.Add(int64(earned))
	}
}

// Spend takes one read from the budget and reports whether that read may be sent twice.
func (b *Budget) Spend() bool {
	if b.tokens.Add(-budgetCost) >= 0 {
		return true
	}
	b.Refund()
	return false
}

// Refund undoes Spend for a read that was not sent twice after all.
func (b *Budget) Refund() { b.tokens.Add(budgetCost) }
