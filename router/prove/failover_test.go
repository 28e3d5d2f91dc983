package prove_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
)

// promote makes a standby the primary.
func promote(t *testing.T, s *localpg.Server) {
	t.Helper()
	if !ask[bool](t, s.DSN(database), `select pg_promote()`) {
		t.Fatal("the standby was not promoted")
	}
}

// TestPrimaryIsFound has writes go to the primary, wherever it stands in the DSN, and though a standby hangs.
func TestPrimaryIsFound(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	for name, dsn := range map[string]string{"first": dsn(t, p.primary, p.standby), "last": dsn(t, p.standby, p.primary)} {
		r := open(t, router.Config{}, dsn)
		if err := write(t.Context(), shard(t, r, 1), int64(len(name))); err != nil {
			t.Errorf("primary %s: %v", name, err)
		}
		if got := stats(r, 0); got.Primary != address(t, p.primary) || got.Timeline != 1 || got.Breaker != router.BreakerClosed || got.RoleChanges != 0 {
			t.Errorf("primary %s: %+v", name, got)
		}
	}
	do(t, p.primary.DSN(database), `alter system set synchronous_standby_names = ''`)
	do(t, p.primary.DSN(database), `select pg_reload_conf()`)
	if err := p.standby.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := open(t, router.Config{Failover: router.Failover{FailAfter: failSoon}}, dsn(t, p.standby, p.primary))
	if err := write(t.Context(), shard(t, r, 1), 100); err != nil {
		t.Error(err)
	}
}

// TestFailoverAfterKill loses the primary's machine, promotes the standby, and has the old primary come back: first to
// refuse its clients, then as it was, then as a standby. It is never written to.
func TestFailoverAfterKill(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	var out log
	r := open(t, router.Config{Logger: out.logger()}, dsn(t, p.primary, p.standby))
	s := shard(t, r, 1)
	if err := errors.Join(write(t.Context(), s, 1), read(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	if err := p.primary.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	isDown(t, r, 0)
	waiting := make(chan error, 2)
	go func() { waiting <- again(t.Context(), func(ctx context.Context) error { return write(ctx, s, 2) }) }()
	go func() { waiting <- again(t.Context(), func(ctx context.Context) error { return read(ctx, s) }) }()
	promote(t, p.standby)
	for range cap(waiting) {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
	want := router.HostStats{Primary: address(t, p.standby), Timeline: 2, RoleChanges: 1}
	if got := stats(r, 0); got.Primary != want.Primary || got.Timeline != want.Timeline || got.RoleChanges != want.RoleChanges {
		t.Errorf("got %+v, want %+v", got, want)
	}

	hba := filepath.Join(p.primary.DataDir(), "pg_hba.conf")
	allowed, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name  string
		do    func() error
		asked func() bool
	}{
		{"it refuses clients", func() error {
			return os.WriteFile(hba, []byte("host replication all all trust\nhost postgres all all scram-sha-256\n"), 0o600)
		}, func() bool { return strings.Contains(p.primary.Log(t.Context()), "no pg_hba.conf entry") }},
		{"it believes that it is the primary", func() error { return os.WriteFile(hba, allowed, 0o600) }, func() bool { return probed(t, p.primary) }},
		{"it is a standby", func() error {
			return errors.Join(os.WriteFile(filepath.Join(p.primary.DataDir(), "standby.signal"), nil, 0o600), own(p.primary, "standby.signal"))
		}, func() bool { return probed(t, p.primary) }},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := p.primary.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			if err := write(t.Context(), s, int64(1000*len(step.name)+n)); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
		}
		eventually(t, "the old primary has been asked", func() bool { return step.asked() })
		if got := stats(r, 0); got.Primary != want.Primary || got.RoleChanges != 1 {
			t.Errorf("%s: %+v", step.name, got)
		}
	}
	if got := ask[int](t, p.primary.DSN(database), `select count(*) from shard_00001.ledger`); got > 2 {
		t.Errorf("the old primary has %d rows", got)
	}
	if got := ask[int](t, p.standby.DSN(database), `select count(*) from shard_00001.ledger`); got != 3+3*20 {
		t.Errorf("the new primary has %d rows", got)
	}
	for _, text := range []string{`"host down"`, `"host up"`, `"primary changed"`} {
		if out.count(text) != 1 {
			t.Errorf("%s: logged %d times:\n%s", text, out.count(text), out.String())
		}
	}
	if password(t, p.primary) == "" || strings.Contains(out.String(), password(t, p.primary)) {
		t.Error("there is a password in the log")
	}
}

// again makes a call again as long as it is safe to.
func again(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	for {
		if err := call(ctx); err == nil || !router.SafeToRetry(err) {
			return err
		}
	}
}

// probed tells whether a server is asked what it is.
func probed(t *testing.T, s *localpg.Server) bool {
	t.Helper()
	return ask[bool](t, s.DSN(database), `select exists (select from pg_stat_activity where query like '%pg_walfile_name%' and pid <> pg_backend_pid())`)
}

func own(s *localpg.Server, name string) error {
	info, err := os.Stat(filepath.Join(s.DataDir(), "PG_VERSION"))
	if err != nil {
		return err
	}
	return chown(filepath.Join(s.DataDir(), name), info)
}

func password(t *testing.T, s *localpg.Server) string {
	t.Helper()
	var password string
	if _, rest, found := strings.Cut(s.DSN(database), "//postgres:"); found {
		password, _, _ = strings.Cut(rest, "@")
	}
	return password
}

// TestZombie freezes the primary, promotes the standby and thaws the old primary, which believes that it still is one.
func TestZombie(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	r := open(t, router.Config{Failover: router.Failover{FailAfter: failSoon, Wait: time.Second}}, dsn(t, p.primary, p.standby))
	s := shard(t, r, 1)
	if err := write(t.Context(), s, 1); err != nil {
		t.Fatal(err)
	}
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into ledger values (2)`); err != nil {
		t.Fatal(err)
	}
	if err := p.primary.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	writing, reading := make(chan error, 1), make(chan error, 1)
	go func() { writing <- write(t.Context(), s, 3) }()
	go func() { reading <- again(t.Context(), func(ctx context.Context) error { return read(ctx, s) }) }()
	isDown(t, r, 0)
	promote(t, p.standby)
	if err := <-writing; err != nil && !errors.Is(err, router.ErrLost) && !router.SafeToRetry(err) {
		t.Errorf("a write that was under way: %v", err)
	}
	if err := <-reading; err != nil {
		t.Errorf("a read that was under way: %v", err)
	}
	if err := tx.Commit(t.Context()); err == nil || errors.Is(err, router.ErrOutcomeUnknown) {
		t.Errorf("a COMMIT that was not sent: %v", err)
	}
	if err := p.primary.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := int64(10)
	eventually(t, "the old primary has been asked", func() bool {
		for last := n + 20; n < last; n++ {
			if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, s, n) }); err != nil {
				t.Fatal(err)
			}
		}
		return probed(t, p.primary)
	})
	if got := stats(r, 0); got.Primary != address(t, p.standby) || got.Timeline != 2 || got.RoleChanges != 1 {
		t.Errorf("got %+v", got)
	}
	// A router that is opened now finds the right one too.
	late := open(t, router.Config{Failover: router.Failover{Wait: time.Second}}, dsn(t, p.primary, p.standby))
	if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, shard(t, late, 1), 5) }); err != nil {
		t.Error(err)
	}
	if got := stats(late, 0); got.Primary != address(t, p.standby) {
		t.Errorf("a new router: %+v", got)
	}
	// Nor is the old one good enough when the new one is gone.
	if err := p.standby.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	isDown(t, r, 0)
	isDown(t, late, 0)
	ctx, cancel := context.WithTimeout(t.Context(), testLimit) // one that is written to waits for its standby
	defer cancel()
	for _, each := range []router.Shard{s, shard(t, late, 1)} {
		if err := again3(func() error { return write(ctx, each, 1_000_000) }); !errors.Is(err, router.ErrHostDown) {
			t.Errorf("the old primary is all that is left: %v", err)
		}
	}
	if got := ask[int](t, p.primary.DSN(database), `select count(*) from shard_00001.ledger where id >= 10`); got != 0 {
		t.Errorf("%d rows were written to the old primary", got)
	}
}

// again3 makes a call until it succeeds, and three times at most.
func again3(call func() error) (err error) {
	for range 3 {
		if err = call(); err == nil {
			return nil
		}
	}
	return err
}

// TestPromotionIsSeenBeforeSilence has a standby be promoted beside a primary that goes on. However long a host may be
// silent, its addresses are asked all the time.
func TestPromotionIsSeenBeforeSilence(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	r := open(t, router.Config{Failover: router.Failover{FailAfter: time.Hour}}, dsn(t, p.primary, p.standby))
	if err := write(t.Context(), shard(t, r, 1), 1); err != nil {
		t.Fatal(err)
	}
	promote(t, p.standby)
	eventually(t, "the promoted one is taken", func() bool { return stats(r, 0).Primary == address(t, p.standby) })
}
