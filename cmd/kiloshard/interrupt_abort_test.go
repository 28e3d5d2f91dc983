//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// A move abort that is stopped by a signal, wherever it waits, ends well when it is run again, and leaves nothing.
func TestInterruptAbort(t *testing.T) {
	t.Parallel()
	m := newMover(t)
	held := func(tag string) string {
		return fmt.Sprintf(heldCommand, tag) + `; commit; begin; select pg_advisory_xact_lock(7)`
	}
	stops := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}
	for i, tt := range []struct{ name, host, hold string }{
		{"the ledger of the source", "PG_A_DSN", `begin; lock kiloshard.moves`},
		{"the ledger of the target", "PG_B_DSN", `begin; lock kiloshard.moves`},
		{"the subscription", "PG_B_DSN", held("ALTER SUBSCRIPTION")},
		{"a subscription that is dropped", "PG_B_DSN", held("DROP SUBSCRIPTION")},
		{"the publication", "PG_A_DSN", held("DROP PUBLICATION")},
		{"the markers", "PG_B_DSN", `begin; lock kiloshard.move_markers`},
		{"a reader of the copy", "PG_B_DSN", `begin; lock shard_00001.users in access share mode`},
		{"a copy that is dropped", "PG_B_DSN", held("DROP SCHEMA")},
	} {
		writer := m.hostConn("PG_A_DSN") // for which a cutover waits
		m.exec(writer, `begin; lock shard_00001.users in row exclusive mode`)
		cmd, out := m.start("1")
		m.readUntil(bufio.NewScanner(out), "copy: caught up")
		_, _ = cmd.Process.Kill(), cmd.Wait()
		_, _ = out.Close(), writer.Close(t.Context())
		holder, watcher := m.hostConn(tt.host), m.hostConn(tt.host)
		m.exec(holder, tt.hold)
		abort := m.command("move", "abort", "--yes", "-v")
		var said bytes.Buffer
		abort.Stdout, abort.Stderr = &said, &said
		if err := abort.Start(); err != nil {
			t.Fatal(err)
		}
		m.awaits(watcher, waitsForLock, tt.name)
		if err := abort.Process.Signal(stops[i%2]); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(abort.Wait()); code == cli.ExitDone || code < 0 || !strings.Contains(said.String(), "interrupted\n") {
			t.Errorf("%s: exit code %d:\n%s", tt.name, code, said.String())
		}
		m.exec(holder, `rollback; drop event trigger if exists held; drop function if exists public.hold()`)
		m.run(cli.ExitDone, "move", "abort", "--yes")
		m.servedOn("pg-a", "1")
		m.awaits(watcher, `select not exists (select from pg_replication_slots where database = current_database()) and not exists (select from pg_publication)
			and not exists (select from pg_subscription where subdbid = (select oid from pg_database where datname = current_database()))
			and not exists (select from kiloshard.moves where outcome is null) and not exists (select from kiloshard.move_markers)`, tt.name)
		_, _ = holder.Close(t.Context()), watcher.Close(t.Context())
	}
	m.run(cli.ExitDone, "move", "1", "--to", "pg-b", "--login-with-password")
	m.servedOn("pg-b", "1")
}
