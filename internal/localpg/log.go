package localpg

import (
	"regexp"
	"strings"
)

// waiting is what a server logs when it is asked too early whether it is ready.
var waiting = regexp.MustCompile(`FATAL:  the database system is (starting up|not yet accepting connections)|` +
	`DETAIL:  Consistent recovery state has not been yet reached`)

// tail returns the last lines of a log, without those that come from waiting for the server.
func tail(text string) string {
	const most = 20
	var lines []string
	for line := range strings.Lines(text) {
		if !waiting.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.TrimRight(strings.Join(lines[max(0, len(lines)-most):], ""), "\n")
}
