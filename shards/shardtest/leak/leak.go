// Package leak finds the goroutines that the tests of a package have left, and gives those that are about to end the
// time that they need on a busy machine. goleak alone waits less than half a second.
package leak

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// endLimit is how long a goroutine may take to end.
const endLimit = time.Minute

// Find is [goleak.Find] of what is still there after a minute.
func Find(options ...goleak.Option) error { return find(endLimit, options...) }

func find(limit time.Duration, options ...goleak.Option) error {
	deadline := time.Now().Add(limit)
	for {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// Check is for a TestMain of its own: code is how its tests have ended, and what is returned is how it ends. What tests that
// passed have left, it tells standard error, and returns 1.
func Check(code int, options ...goleak.Option) int { return check(endLimit, code, options...) }

func check(limit time.Duration, code int, options ...goleak.Option) int {
	if code != 0 {
		return code
	}
	if err := find(limit, options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Main is for [goleak.VerifyTestMain]: the tests of M, and the wait for what they have begun.
type Main struct{ M goleak.TestingM }

// Run implements [goleak.TestingM].
func (m Main) Run() int {
	code := m.M.Run()
	if code == 0 {
		_ = Find() // goleak tells what it finds after that
	}
	return code
}
