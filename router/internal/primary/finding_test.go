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

// TestOfThisMachine tells what this machine lacks from what a server does. A name may stand for an address of a kind that
// this machine does not have, beside one where nobody listens.
func TestOfThisMachine(t *testing.T) {
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
		{"no ::1 here, and nobody listens at 127.0.0.1", errors.Join(dial(syscall.EADDRNOTAVAIL), dial(syscall.ECONNREFUSED)), false},
		{"nobody listens", dial(syscall.ECONNREFUSED), false},
		{"another error", errors.New("x"), false},
		{"none", nil, false},
	} {
		if got := primary.OfThisMachine(test.err); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}
