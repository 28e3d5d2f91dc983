package network

import (
	"syscall"
	"time"
)

// sleep is [time.Sleep], accurate to about 50 microseconds.
func sleep(d time.Duration) {
	if d > 0 {
		left := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&left, nil) // a signal ends it early
	}
}
