//go:build !unix

package localetcd

import "os/exec"

func detach(*exec.Cmd) {}
