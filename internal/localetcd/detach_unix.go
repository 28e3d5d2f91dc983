//go:build unix

package localetcd

import (
	"os/exec"
	"syscall"
)

// detach starts the process in a new session, so that Ctrl-C in a terminal interrupts only this process, which then stops
// the server.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
