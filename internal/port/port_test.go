package port_test

import (
	"net"
	"testing"

	"github.com/kiloshard/kiloshard/internal/port"
)

// While a port is taken nobody else gets it, although nobody listens on it; a server may.
func TestTake(t *testing.T) {
	t.Parallel()
	taken := map[int]bool{}
	for range 2000 {
		p, err := port.Take()
		if err != nil {
			t.Fatal(err)
		}
		if taken[p.Number] {
			t.Fatalf("port %d was given twice", p.Number)
		}
		taken[p.Number] = true
		defer p.Release()
		if len(taken) > 1 {
			continue
		}
		for range 2 {
			l, err := net.Listen("tcp4", p.Address())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
