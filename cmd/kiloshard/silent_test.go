package main

import (
	"context"
	"net"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// silent is a server that takes connections and says nothing. It starts when the script says: silent, which sets SILENT to
// its address. With silent login it lets everybody log in before.
type silent struct{ t *testing.T }

func (s *silent) command(ts *testscript.TestScript, neg bool, args []string) {
	if !neg && len(args) == 1 && args[0] == "login" {
		ts.Setenv("SILENT", pgtest.Silent(s.t))
		return
	}
	if neg || len(args) != 0 {
		ts.Fatalf("usage: silent [login]")
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("SILENT", listener.Addr().String())
	s.t.Cleanup(func() { _ = listener.Close() }) // and what nobody has accepted
}
