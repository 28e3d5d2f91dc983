package move

import (
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Report is the result of some moves.
type Report struct {
	Done      shards.Set // on the target, or where they were after Abort
	Unmoved   shards.Set // that were on the target already
	Resumable shards.Set // whose move is still under way: the ledger has it
}

// asked selects the moves that a command works on: those with one of some outcomes. A move that another mover has ended meanwhile, as end, is done.
type asked struct {
	of  []ledger.Outcome
	end ledger.Outcome
}

// endedAs returns an error unless a move that has ended meanwhile has ended as the command would.
func (a asked) endedAs(outcome ledger.Outcome) error {
	if outcome == a.end {
		return nil
	}
	return fmt.Errorf("another command has ended the move meanwhile: it is %s", outcome)
}

// together joins the reports of different shards.
func together(a, b Report) Report {
	return Report{Done: a.Done.Union(b.Done), Unmoved: a.Unmoved.Union(b.Unmoved), Resumable: a.Resumable.Union(b.Resumable)}
}

// partly joins their errors, each a [shards.PartialError] or nil.
func partly(errs ...error) error {
	all := &shards.PartialError{}
	for _, err := range errs {
		var partial *shards.PartialError
		if errors.As(err, &partial) {
			all.Done = all.Done.Union(partial.Done)
			all.Failed, all.Causes = append(all.Failed, partial.Failed...), append(all.Causes, partial.Causes...)
			all.NotAttempted, all.Interrupted = all.NotAttempted.Union(partial.NotAttempted), all.Interrupted.Union(partial.Interrupted)
		}
	}
	if len(all.Failed)+all.NotAttempted.Len() == 0 {
		return nil
	}
	return all
}
