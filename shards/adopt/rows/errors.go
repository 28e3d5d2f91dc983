package rows

import (
	"fmt"
	"strings"
)

// CheckError has all reasons why rows cannot move. Nothing has moved.
type CheckError struct{ Problems []string }

// Error joins the problems.
func (e *CheckError) Error() string { return strings.Join(e.Problems, "; ") }

// DifferenceError says that the rows of shards differ from those of the old tables.
type DifferenceError struct{ Differences []string }

const mostNamed = 10

// Error names up to ten differences.
func (e *DifferenceError) Error() string {
	text := strings.Join(e.Differences[:min(len(e.Differences), mostNamed)], "; ")
	if more := len(e.Differences) - mostNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
