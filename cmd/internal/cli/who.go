package cli

import (
	"os"
	"os/user"
)

// Whoami returns who runs this process, as user@machine.
func Whoami() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
