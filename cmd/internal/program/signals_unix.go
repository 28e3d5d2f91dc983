//go:build unix

package program

import (
	"os"
	"syscall"
)

// stopping are signals from the terminal that end or stop a program at once: Ctrl-\ and Ctrl-Z.
var stopping = []os.Signal{syscall.SIGQUIT, syscall.SIGTSTP}
