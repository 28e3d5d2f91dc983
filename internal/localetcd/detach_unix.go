//go:build unix

package localetcd

import (
	"os/exec"
	"syscall"
)

// detach gives the process a session of its own, so that Ctrl-C in a terminal reaches only this process, which then ends
// the server itself.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
