package primary_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/primary"
)

// TestIsLocal tells missing resources of this machine from failures of a server. A name may have an address of a kind that
// this machine lacks, and another one where no server listens.
func TestIsLocal(t *testing.T) {
	t.Parallel()
	dial := func(errno syscall.Errno) error {
		return fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)})
	}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"no files left", dial(syscall.EMFILE), true},
		{"no ports left", dial(syscall.EADDRNOTAVAIL), true},
		{"no ports left, twice", errors.Join(dial(syscall.EADDRNOTAVAIL), dial(syscall.EADDRNOTAVAIL)), true},
		{"no ::1 here, and no server at 127.0.0.1", errors.Join(dial(syscall.EADDRNOTAVAIL), dial(syscall.ECONNREFUSED)), false},
		{"no server", dial(syscall.ECONNREFUSED), false},
		{"another error", errors.New("x"), false},
		{"none", nil, false},
	} {
		if got := primary.IsLocal(test.err); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}
