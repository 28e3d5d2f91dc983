//go:build unix

package connect

import (
	"os/exec"
	"syscall"
)

// killAll has the command killed together with the programs that it starts, such as those of a shell.
func killAll(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
