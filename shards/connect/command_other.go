//go:build !unix

package connect

import "os/exec"

// killAll does nothing: os/exec kills the command, but not its children.
func killAll(*exec.Cmd) {}
