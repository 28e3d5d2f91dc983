//go:build !linux

package network

import "time"

func sleep(d time.Duration) { time.Sleep(d) }
