//go:build unix

package cli

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"testing"
)

type info struct {
	fs.FileInfo
	mode fs.FileMode
	uid  int
}

func (i info) Mode() fs.FileMode { return i.mode }
func (i info) Sys() any          { return &syscall.Stat_t{Uid: uint32(i.uid)} } //nolint:gosec // it is no larger

func TestOthersOf(t *testing.T) {
	t.Parallel()
	me := os.Geteuid()
	for _, test := range []struct {
		info info
		sudo string
		want string
	}{
		{info{mode: 0o644, uid: me}, "", ""},
		{info{mode: 0o664, uid: me}, "", ""},
		{info{mode: 0o644, uid: 0}, "", ""},
		{info{mode: 0o646, uid: me}, "", "may be written by all users"},
		{info{mode: 0o600, uid: 4711}, "", "belongs to user 4711"},
		{info{mode: 0o600, uid: 4711}, "4712", "belongs to user 4711"},
	} {
		lookup := func(string) (string, bool) { return test.sudo, test.sudo != "" }
		if got := othersOf(test.info, lookup); got != test.want {
			t.Errorf("%v: got %q, want %q", test, got, test.want)
		}
	}
	if got := othersOf(info{mode: 0o600, uid: 4711}, func(string) (string, bool) { return strconv.Itoa(4711), true }); me == 0 && got != "" {
		t.Errorf("root by way of sudo: got %q", got)
	}
}
