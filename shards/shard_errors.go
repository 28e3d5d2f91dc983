package shards

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ShardError is an error about one shard.
type ShardError struct {
	Shard  Number
	Schema string
	Host   string // the host's name
	Err    error
}

// Error names the shard, its schema and its host, and the cause.
func (e *ShardError) Error() string {
	return fmt.Sprintf("shard %d (%s on %s): %v", e.Shard, e.Schema, e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *ShardError) Unwrap() error { return e.Err }

// HostError is an error about a whole host, such as one that does not answer.
type HostError struct {
	Host string // the host's name
	Err  error
}

// Error names the host and the cause.
func (e *HostError) Error() string { return fmt.Sprintf("host %s: %v", e.Host, e.Err) }

// Unwrap returns the cause.
func (e *HostError) Unwrap() error { return e.Err }

// PartialError says that work on many shards is incomplete: which are done, which
// failed, and which were not attempted. Running the same again continues with the rest.
type PartialError struct {
	Done         Set
	Failed       []*ShardError // in rising order of their shards
	NotAttempted Set
	Interrupted  Set     // shards of NotAttempted whose work an interrupt stopped, such as a move that waits in its ledger
	Causes       []error // why work stopped early: host errors, an interrupt; may be empty
}

// counts returns how many shards failed, were interrupted and were not attempted, such as "1 failed, 15 not attempted".
func (e *PartialError) counts() string {
	text := fmt.Sprintf("%d failed, ", len(e.Failed))
	if n := e.Interrupted.Len(); n > 0 {
		text += fmt.Sprintf("%d interrupted, ", n)
	}
	return text + fmt.Sprintf("%d not attempted", e.NotAttempted.Len()-e.Interrupted.Len())
}

// Error counts the kinds and names the first failure and what stopped the work.
func (e *PartialError) Error() string {
	total := e.Done.Len() + len(e.Failed) + e.NotAttempted.Len()
	text := ""
	if total > 0 || len(e.Causes) == 0 {
		text = fmt.Sprintf("%d of %d shards done, %s", e.Done.Len(), total, e.counts())
	}
	var reasons []string
	for _, cause := range e.Causes {
		reasons = append(reasons, cause.Error())
	}
	if len(e.Failed) > 0 {
		first := e.Failed[0]
		if text := first.Err.Error(); slices.Contains(reasons, text) {
			first = &ShardError{first.Shard, first.Schema, first.Host, errSame}
		}
		reasons = append(reasons, first.Error())
	}
	if more := len(e.Failed) - 1; more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	if text != "" && len(reasons) > 0 {
		text += ": "
	}
	return text + strings.Join(reasons, "; ")
}

// errSame replaces a text that is the same as the one before it.
var errSame = errors.New("the same")

// Unwrap returns the causes and the errors of all failed shards.
func (e *PartialError) Unwrap() []error {
	all := append([]error(nil), e.Causes...)
	for _, failed := range e.Failed {
		all = append(all, failed)
	}
	return all
}
