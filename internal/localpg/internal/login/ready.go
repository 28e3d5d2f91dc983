package login

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	readyLimit    = 5 * time.Minute       // for a server to answer
	retryInterval = 20 * time.Millisecond // between attempts
	attemptLimit  = 20 * time.Second      // for one attempt
)

// Wait waits until the server answers and returns its version, as in "15.18". It gives up when ctx ends, after five minutes,
// or when alive returns an error that says why the server has ended.
func (d DSN) Wait(ctx context.Context, alive func(context.Context) error) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for {
		version, err := d.Version(ctx)
		if err == nil {
			return version, nil
		}
		if ended := alive(ctx); ended != nil {
			return "", ended
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no answer: %w (%w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Version returns the server's version. It tries once.
func (d DSN) Version(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	conn, err := d.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	const query = "select split_part(current_setting('server_version'), ' ', 1)"
	err = conn.QueryRow(ctx, query).Scan(&version)
	return version, err
}

// tooEarly matches what a server logs for the attempts of Wait before it is ready.
var tooEarly = regexp.MustCompile(`FATAL:  the database system is (starting up|not yet accepting connections)|` +
	`DETAIL:  Consistent recovery state has not been yet reached`)

// Tail returns the last 20 lines of a server's log, without those that Wait causes.
func Tail(log string) string {
	const most = 20
	var lines []string
	for line := range strings.Lines(log) {
		if !tooEarly.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.TrimRight(strings.Join(lines[max(0, len(lines)-most):], ""), "\n")
}
