package provision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

func TestVerifyNamesEachDifference(t *testing.T) {
	t.Parallel()
	const a, b = 0, 1 // hosts of shards 0-7 and 8-15
	tests := []struct {
		name   string
		host   int
		change string
		kind   provision.Kind
		on     string // the host and schema of the difference
	}{
		{"missing", a, "drop schema shard_00003 cascade", provision.KindMissing, "pg-a shard_00003"},
		{"on two hosts", b, "create schema shard_00003", provision.KindTwice, "pg-b shard_00003"},
		{"another shard's number", a, `create or replace function shard_00002.next_id() returns bigint language plpgsql as
			$$ begin return kiloshard.next_id(3, 'shard_00002.next_id_seq'); end $$`, provision.KindFunction, "pg-a shard_00002"},
		{"in another language", a, `create or replace function shard_00002.next_id() returns bigint language sql as
			$$ select kiloshard.next_id(2, 'shard_00002.next_id_seq') $$`, provision.KindFunction, "pg-a shard_00002"},
		{"no next_ids", b, "drop function shard_00009.next_ids", provision.KindFunction, "pg-b shard_00009"},
		{"a cache", b, "alter sequence shard_00010.next_id_seq cache 20", provision.KindSequence, "pg-b shard_00010"},
		{"a maximum", b, "alter sequence shard_00010.next_id_seq no maxvalue", provision.KindSequence, "pg-b shard_00010"},
		{"a cycle", b, "alter sequence shard_00010.next_id_seq cycle", provision.KindSequence, "pg-b shard_00010"},
		{"an increment", b, "alter sequence shard_00010.next_id_seq increment 2", provision.KindSequence, "pg-b shard_00010"},
		{"no sequence", b, "drop sequence shard_00010.next_id_seq cascade", provision.KindSequence, "pg-b shard_00010"},
		{"past the map", a, "create schema shard_00016", provision.KindStray, "pg-a shard_00016"},
		{"four digits", a, "create schema shard_0001", provision.KindStray, "pg-a shard_0001"},
		{"another epoch", b, `update kiloshard.settings set epoch = '2020-01-01Z'`, provision.KindEngine, "pg-b kiloshard"},
		{"another engine", b, `update kiloshard.settings set engine = 'old'`, provision.KindOld, "pg-b kiloshard"},
		{"an engine that was changed", b, `create or replace function kiloshard.catch_up_to_clock(shard int, seq regclass, wanted int, seen bigint)
			returns bigint language plpgsql as $$ begin return seen; end $$`, provision.KindEngine, "pg-b kiloshard"},
		{"an immutable next_id", a, "alter function shard_00002.next_id() immutable", provision.KindFunction, "pg-a shard_00002"},
		{"a strict next_id", a, "alter function shard_00002.next_id(regclass) strict", provision.KindFunction, "pg-a shard_00002"},
		{"a leakproof one", a, "alter function shard_00002.next_id() leakproof", provision.KindFunction, "pg-a shard_00002"},
		{"a parallel one", a, "alter function shard_00002.next_id() parallel safe", provision.KindFunction, "pg-a shard_00002"},
		{"another's rights", a, "alter function shard_00002.next_id() security definer", provision.KindFunction, "pg-a shard_00002"},
		{"a setting", a, "alter function shard_00002.next_id() set work_mem = '1MB'", provision.KindFunction, "pg-a shard_00002"},
		{"a right that was revoked", a, "revoke execute on function shard_00002.next_id() from public", provision.KindFunction, "pg-a shard_00002"},
		{"another owner", a, "alter function shard_00002.next_id() owner to pg_monitor", provision.KindFunction, "pg-a shard_00002"},
		{"another result", a, "drop function shard_00002.next_ids; create function shard_00002.next_ids(n int) returns setof int language sql as 'select n'", provision.KindFunction, "pg-a shard_00002"},
		{"the engine's path", b, "alter function kiloshard.catch_up_to_clock set search_path = public", provision.KindEngine, "pg-b kiloshard"},
		{"the engine's path is gone", b, "alter function kiloshard.draw reset all", provision.KindEngine, "pg-b kiloshard"},
		{"a stable engine", b, "alter function kiloshard.next_id stable", provision.KindEngine, "pg-b kiloshard"},
		{"id_floor changes", b, "alter function kiloshard.id_floor volatile", provision.KindEngine, "pg-b kiloshard"},
		{"id_time changes", b, "create or replace function kiloshard.id_time(id bigint) returns timestamptz language sql immutable strict parallel safe as 'select now()'", provision.KindEngine, "pg-b kiloshard"},
		{"a start", b, "alter sequence shard_00010.next_id_seq start 7", provision.KindSequence, "pg-b shard_00010"},
		{"a minimum", b, "alter sequence shard_00010.next_id_seq minvalue 0", provision.KindSequence, "pg-b shard_00010"},
		{"another owner of the sequence", b, "alter sequence shard_00010.next_id_seq owner to pg_monitor", provision.KindSequence, "pg-b shard_00010"},
		{"a column's sequence", b, "create table shard_00010.t (id bigint); alter sequence shard_00010.next_id_seq owned by shard_00010.t.id", provision.KindSequence, "pg-b shard_00010"},
		{"another role that may set it", b, "grant update on sequence shard_00010.next_id_seq to pg_monitor", provision.KindSequence, "pg-b shard_00010"},
		{"another role that may set a table's own", b, `create sequence shard_00010.own maxvalue 1125899906842623; create table shard_00010.t (id bigint default shard_00010.next_id('shard_00010.own')); grant update on sequence shard_00010.own to pg_monitor`, provision.KindSequence, "pg-b shard_00010"},
		{"another owner of a table's own", b, `create sequence shard_00010.own maxvalue 1125899906842623; create table shard_00010.t (id bigint default shard_00010.next_id('shard_00010.own')); alter sequence shard_00010.own owner to pg_monitor`, provision.KindSequence, "pg-b shard_00010"},
		{"not in the WAL", b, "alter sequence shard_00010.next_id_seq set unlogged", provision.KindSequence, "pg-b shard_00010"},
		{"no engine", b, "drop table kiloshard.settings", provision.KindEngine, "pg-b kiloshard"},
	}
	checkComplete(t, created(t, 16)) // as those of all tests, which are clones of the same databases
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := created(t, 16)
			on(t, m.Hosts()[test.host], test.change)
			differences, err := provision.Verify(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, d := range differences {
				if fmt.Sprint(d.Host, " ", d.Schema) != test.on {
					t.Errorf("a difference elsewhere: %s", d)
				}
				found = found || d.Kind == test.kind
			}
			if !found {
				t.Errorf("got %v, expected a difference of kind %q on %s", differences, test.kind, test.on)
			}
		})
	}
}

func TestVerifyFindsAMisplacedShard(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Hosts()[0], "drop schema shard_00003 cascade")
	on(t, m.Hosts()[1], "create schema shard_00003")
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if len(differences) == 0 || differences[0].Schema != "shard_00003" || differences[0].Host != "pg-b" {
		t.Fatalf("got %v", differences)
	}
	for _, d := range differences {
		if d.Kind == provision.KindMisplaced {
			return
		}
	}
	t.Errorf("got %v, expected shard 3 to be misplaced", differences)
}

func TestVerifyWithoutOneHost(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Hosts()[0], "drop schema shard_00003 cascade")
	c := m.Config()
	c.Hosts[1].DSN = "postgres://app@127.0.0.1:1/app"
	differences, err := provision.Verify(t.Context(), build(t, c))
	var host *shards.HostError
	if !errors.As(err, &host) || host.Host != "pg-b" {
		t.Errorf("got error %v, expected one of pg-b", err)
	}
	if len(differences) != 1 || differences[0].Kind != provision.KindMissing || !strings.HasSuffix(differences[0].Want, "unless it is on a host that does not answer") {
		t.Errorf("got %v, expected shard 3 to be missing unless it is on pg-b", differences)
	}
}
