//go:build unix

package connect

import (
	"os/exec"
	"syscall"
)

// killAll makes the command be killed together with its children, such as those of a shell.
func killAll(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
