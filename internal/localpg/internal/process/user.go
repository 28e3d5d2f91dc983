//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// User is the user that a server runs as. The zero value is the user of this process.
type User struct {
	name       string
	credential *syscall.Credential // nil for the user of this process
}

// ServerUser returns the user for servers: postgres or nobody if this process runs as root, since Postgres refuses to run as root.
func ServerUser() (User, error) {
	if os.Geteuid() != 0 {
		return User{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return User{name, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return User{}, errors.New("Postgres cannot run as root, and there is neither a user postgres nor nobody")
}

// IsOther reports whether it is another user than that of this process.
func (u User) IsOther() bool { return u.credential != nil }

// Give makes the user the owner of a file.
func (u User) Give(path string) error {
	if !u.IsOther() {
		return nil
	}
	return os.Chown(path, int(u.credential.Uid), int(u.credential.Gid))
}

// WriteFile writes a file that only the user, and root, can read.
func (u User) WriteFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return u.Give(path)
}

// Try runs a program in a directory to find out whether the user can do what, which the error names. If the user is that of this
// process, Try does nothing.
func (u User) Try(what, dir, program string, args ...string) error {
	if !u.IsOther() {
		return nil
	}
	cmd := u.command(exec.Command(program, args...))
	cmd.Dir = dir
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the user %s, who the server runs as, cannot %s: %w", u.name, what, err)
	}
	return nil
}

// command makes cmd run as the user, in a directory that every user can enter.
func (u User) command(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential}
	return cmd
}
