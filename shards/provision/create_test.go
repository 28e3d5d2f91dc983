package provision_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	m := newMap(t, 140)
	first := create(t, m)
	if first.Created.String() != "0-139" || first.Existed.Len() != 0 {
		t.Errorf("the first run created %s, %d were there already", first.Created, first.Existed.Len())
	}
	checkComplete(t, m)
	second := create(t, m)
	if second.Created.Len() != 0 || second.Existed.String() != "0-139" {
		t.Errorf("the second run created %s, %s were there already", second.Created, second.Existed)
	}
	for _, host := range m.Hosts() {
		if got := on(t, host, `select count(*) from pg_namespace where nspname like 'shard\_%'`); got[0] != "70" {
			t.Errorf("host %s has %s shards, expected 70", host.Name, got[0])
		}
	}
}

func TestCreateAddsMissingShards(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Host(3), "drop schema shard_00003 cascade")
	on(t, m.Host(4), "drop function shard_00004.next_id()")
	on(t, m.Host(12), "drop sequence shard_00012.next_id_seq cascade")
	if report := create(t, m); report.Created.String() != "3" || report.Completed.String() != "4,12" {
		t.Errorf("created %s and completed %s, expected 3 and 4,12", report.Created, report.Completed)
	}
	checkComplete(t, m)
}

// TestTwoCreatesAtOnce: one Create waits for the other, and then has nothing to do.
func TestTwoCreatesAtOnce(t *testing.T) {
	t.Parallel()
	m := newMap(t, 200)
	type outcome struct {
		report provision.CreateReport
		err    error
	}
	outcomes := make(chan outcome)
	for range 2 {
		go func() {
			report, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
			outcomes <- outcome{report, err}
		}()
	}
	first, second := <-outcomes, <-outcomes
	if first.err != nil || second.err != nil {
		t.Fatalf("got %v and %v", first.err, second.err)
	}
	if first.report.Created.Len() != 200 || second.report.Created.Len() != 0 || second.report.Existed.Len() != 200 {
		t.Errorf("created %s and %s, expected all by the one that ended first", first.report.Created, second.report.Created)
	}
	checkComplete(t, m)
}

// TestCreateNamesLockHolder has another program hold a host's lock for longer than Create waits.
func TestCreateNamesLockHolder(t *testing.T) {
	t.Parallel()
	m := newMap(t, 8)
	other := session(t, m.Hosts()[1])
	var pid int
	if err := other.QueryRow(t.Context(), "select pg_backend_pid() from pg_advisory_lock($1::int, 1)", int32(sql.LockClass)).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m, Wait: time.Millisecond})
	if !errors.Is(err, provision.ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("host pg-b: another create, upgrade or grant is at work: process %d, role ", pid)) {
		t.Errorf("got %v, expected process %d on pg-b", err, pid)
	}
	for _, host := range m.Hosts() {
		if got := on(t, host, "select nspname from pg_namespace where nspname ~ 'shard'"); len(got) > 0 {
			t.Errorf("host %s has schemas %s", host.Name, got)
		}
	}
}

// TestForeignSchema: a schema that Kiloshard did not make has the name of a shard.
func TestForeignSchema(t *testing.T) {
	t.Parallel()
	m := newMap(t, 8)
	on(t, m.Host(6), "create schema shard_00006; create table shard_00006.invoices (id int)")
	_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
	var e *provision.ForeignError
	if !errors.As(err, &e) || len(e.Schemas) != 1 || !strings.Contains(err.Error(), "schema shard_00006 on pg-b was made by somebody else: it belongs to role ") {
		t.Errorf("got %v, expected shard_00006 on pg-b to be refused", err)
	}
	if got := on(t, m.Host(0), "select nspname from pg_namespace where nspname ~ 'shard'"); len(got) > 0 {
		t.Errorf("schemas %s were made all the same", got)
	}
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	foreign := 0
	for _, d := range differences {
		if d.Schema == "shard_00006" {
			if foreign++; d.Kind != provision.KindForeign {
				t.Errorf("got %s", d)
			}
		}
	}
	if foreign != 1 {
		t.Errorf("got %v, expected one difference of shard_00006", differences)
	}
}

// TestBatchIsAtomic: an object blocks a shard, created before or during Create.
func TestBatchIsAtomic(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, change, want string }{
		{"a table in the sequence's place", "create schema shard_00002; create table shard_00002.next_id_seq (id int); create function shard_00002.next_ids(n int) returns setof bigint language sql as 'select 1::bigint'", "shard_00002.next_id_seq was there before and cannot make IDs"},
		{"a sequence with a cache", "create schema shard_00002; create sequence shard_00002.next_id_seq cache 20 maxvalue 1125899906842623", "shard_00002.next_id_seq was there before and cannot make IDs"},
		{"a function of another kind", "create schema shard_00002; create sequence shard_00002.next_id_seq maxvalue 1125899906842623; create function shard_00002.next_id() returns text language sql as 'select null::text'", "cannot change return type"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMap(t, 8)
			on(t, m.Host(2), test.change)
			const query = `select count(*) from pg_proc where pronamespace = 'shard_00002'::regnamespace`
			before := on(t, m.Host(2), query)
			report, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
			var partial *shards.PartialError
			if !errors.As(err, &partial) || len(partial.Failed) != 1 || partial.Failed[0].Shard != 2 || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, expected shard 2 to fail with %q", err, test.want)
			}
			if report.Created.String() != "0-1,3-7" {
				t.Errorf("created %s, expected 0-1,3-7", report.Created)
			}
			if got := on(t, m.Host(2), query); got[0] != before[0] {
				t.Errorf("shard 2 was made in part: %s functions, %s before", got, before)
			}
		})
	}
}

// interrupting is progress that interrupts its run after a number of shards.
type interrupting struct {
	left   int
	cancel context.CancelFunc
}

func (p *interrupting) Begin(string, int) {}
func (p *interrupting) End()              {}
func (p *interrupting) Finished(string, shards.Number, error, time.Duration) {
	if p.left--; p.left == 0 {
		p.cancel()
	}
}

func TestInterruptedCreateContinues(t *testing.T) {
	t.Parallel()
	m := newMap(t, 400)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report, err := provision.Create(ctx, provision.CreateConfig{Map: m, Batch: 10, Progress: &interrupting{left: 50, cancel: cancel}})
	var partial *shards.PartialError
	if !errors.As(err, &partial) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, expected a PartialError that was interrupted", err)
	}
	if partial.Done.Len() < 50 || partial.Done.Len() == 400 || len(partial.Failed) != 0 || partial.Done.Len()+partial.NotAttempted.Len() != 400 {
		t.Errorf("interrupted: %v", err)
	}
	if report.Created.String() != partial.Done.String() {
		t.Errorf("created %s, the error says %s", report.Created, partial.Done)
	}
	rest := create(t, m)
	if rest.Created.String() != partial.NotAttempted.String() || rest.Existed.String() != partial.Done.String() {
		t.Errorf("the second run created %s, expected %s", rest.Created, partial.NotAttempted)
	}
	checkComplete(t, m)
}

// TestKilledSessions kills every session of a run once.
func TestKilledSessions(t *testing.T) {
	t.Parallel()
	m := newMap(t, 400)
	killer := &killing{t: t, m: m, after: 20}
	_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m, Batch: 10, Progress: killer})
	var partial *shards.PartialError
	if err != nil && !errors.As(err, &partial) {
		t.Fatal(err)
	}
	if killer.killed == 0 {
		t.Fatal("no session was killed")
	}
	create(t, m)
	checkComplete(t, m)
}

type killing struct {
	t             *testing.T
	m             *shards.Map
	after, killed int
}

func (p *killing) Begin(string, int) {}
func (p *killing) End()              {}
func (p *killing) Finished(string, shards.Number, error, time.Duration) {
	if p.after--; p.after == 0 {
		for _, host := range p.m.Hosts() {
			p.killed += len(on(p.t, host, `
				select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and application_name = 'kiloshard'`))
		}
	}
}

// TestCreateRefuses: Create returns an error and changes nothing.
func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-pa55"
	tests := []struct {
		name   string
		change func(c *shards.Config)
		want   string // in the error
	}{
		{"a host is down", func(c *shards.Config) {
			c.Hosts[1].DSN = "postgres://app:" + secret + "@127.0.0.1:1/app"
		}, "host pg-b: "},
		{"wrong password", func(c *shards.Config) {
			c.Hosts[1].DSN = withUser(t, c.Hosts[1].DSN, url.UserPassword("postgres", secret))
		}, "host pg-b: "},
		{"a DSN that cannot be read", func(c *shards.Config) {
			c.Hosts[1].DSN = "postgres://app:" + secret + "@127.0.0.1:port/app"
		}, "host pg-b: "},
		{"one database for two hosts", func(c *shards.Config) {
			c.Hosts[1].DSN = c.Hosts[0].DSN
		}, "hosts pg-a and pg-b are the same database"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			hosts := shardtest.Hosts(t, 2)
			c := shardtest.MapConfig(8, append([]shards.Host(nil), hosts...))
			test.change(&c)
			m := build(t, c)
			_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, expected %q in it", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error holds the password: %v", err)
			}
			for _, host := range hosts {
				if got := on(t, host, "select nspname from pg_namespace where nspname ~ 'shard'"); len(got) > 0 {
					t.Errorf("host %s has schemas %s", host.Name, got)
				}
			}
		})
	}
}

func withUser(t *testing.T, dsn string, user *url.Userinfo) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = user
	return u.String()
}

func TestCreateRefusesMisplacedShards(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	c := m.Config()
	c.Placement = []shards.Placement{
		{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 5}), Host: "pg-a"},
		{Shards: shards.SetOfRanges(shards.Range{First: 6, Last: 15}), Host: "pg-b"},
	}
	moved := build(t, c)
	_, err := provision.Create(t.Context(), provision.CreateConfig{Map: moved})
	var e *provision.MisplacedError
	if !errors.As(err, &e) || len(e.Shards) != 2 || e.Shards[0] != 6 || e.Hosts[0] != "pg-a" {
		t.Fatalf("got %v, expected shards 6 and 7 to be misplaced", err)
	}
	if got := on(t, m.Hosts()[1], "select nspname from pg_namespace where nspname in ('shard_00006', 'shard_00007')"); len(got) > 0 {
		t.Errorf("created %s all the same", got)
	}
}

// TestCreateKeepsRows runs a second Create on shards with rows.
func TestCreateKeepsRows(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	host := m.Host(5)
	on(t, host, "create table shard_00005.photos (id bigint primary key default shard_00005.next_id())")
	id := on(t, host, "insert into shard_00005.photos default values returning id")
	on(t, host, "drop function shard_00005.next_ids")
	create(t, m)
	if got := on(t, host, "select id from shard_00005.photos"); len(got) != 1 || got[0] != id[0] {
		t.Errorf("got the rows %s, expected %s", got, id)
	}
	checkComplete(t, m)
}
