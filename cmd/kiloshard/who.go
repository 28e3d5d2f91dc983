package main

import (
	"os"
	"os/user"
)

// whoami returns who runs this process, as user@machine.
func whoami() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
