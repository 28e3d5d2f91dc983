//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// identity is the user that the server runs as.
type identity struct {
	name       string
	credential *syscall.Credential // nil to stay who we are
}

// serverIdentity returns the user to run the server as, for Postgres refuses to be run by root.
func serverIdentity() (identity, error) {
	if os.Geteuid() != 0 {
		return identity{name: strconv.Itoa(os.Geteuid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return identity{name, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return identity{}, errors.New("Postgres cannot run as root, and there is neither a user postgres nor nobody")
}

// give makes the user the owner of the file.
func (id identity) give(path string) error {
	if id.credential == nil {
		return nil
	}
	return os.Chown(path, int(id.credential.Uid), int(id.credential.Gid))
}

// canEnter says whether the user reaches the directory. Only trying tells: there is more to it than mode bits.
func (id identity) canEnter(dir string) error {
	return id.try(exec.Command("/bin/sh", "-c", ":"), dir, "enter "+dir)
}

// canRun says whether the user can run the program.
func (id identity) canRun(program string) error {
	return id.try(exec.Command(program, "--version"), "/", "run "+program)
}

func (id identity) try(cmd *exec.Cmd, dir, what string) error {
	if id.credential == nil {
		return nil
	}
	cmd = id.asUser(cmd)
	cmd.Dir = dir
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the user %s, who the server runs as, cannot %s: %w", id.name, what, err)
	}
	return nil
}

// asUser makes cmd run as the user, in a directory that every user can enter.
func (id identity) asUser(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: id.credential}
	return cmd
}
