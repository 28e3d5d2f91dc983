//go:build unix

package cli

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// othersOf names the users, other than this one and root, that can write a file; empty for none. Under sudo, the caller of sudo counts as this user.
func othersOf(info os.FileInfo, lookup func(string) (string, bool)) string {
	if info.Mode()&0o002 != 0 {
		return "may be written by all users"
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid() {
		return ""
	}
	if by, _ := lookup("SUDO_UID"); os.Geteuid() == 0 && by == strconv.Itoa(int(stat.Uid)) {
		return ""
	}
	return fmt.Sprintf("belongs to user %d", stat.Uid)
}
