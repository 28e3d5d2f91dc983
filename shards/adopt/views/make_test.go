package views_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// relations returns the views of shard 3 with their OIDs.
func (b *bundle) relations() []string {
	b.t.Helper()
	return b.run("select oid, relname from pg_class where relnamespace = 'shard_00003'::regnamespace and relkind = 'v' order by relname")
}

// TestMakeAgain holds that a second run changes nothing, that one after a change of structure or adopt.yaml makes views again, and that a
// client with a prepared statement goes on where only columns were added.
func TestMakeAgain(t *testing.T) {
	t.Parallel()
	b := adopted(t, service, "")
	first := b.relations()
	if report := b.make(); report.Made.Len() != 0 || report.Kept.Len() != 4 || !slices.Equal(b.relations(), first) {
		t.Errorf("a second run: %+v", report)
	}
	b.run("drop view shard_00001.photos")
	if report := b.make(); report.Made.String() != "1" {
		t.Errorf("after the loss of a view: %+v", report)
	}
	s := b.shard(b.router(), 7)
	const query = "select count(*) from albums where user_id = $1"
	before := value(t, s, query, 7)
	b.run("alter table albums add cover text default 'none'; grant select on albums to public")
	if report := b.make(); report.Made.Len() != 4 || !slices.Equal(b.relations(), first) {
		t.Errorf("after a new column: %+v, %q, first %q", report, b.relations(), first)
	}
	if got := value(t, s, query, 7); got != before {
		t.Errorf("then %s, expected %s", got, before)
	}
	if got := value(t, s, "select cover from albums limit 1"); got != "none" {
		t.Errorf("the new column is %s", got)
	}
	for _, statement := range []string{"alter table albums drop cover", "alter table albums alter cover type varchar(9)"} {
		if _, err := pgtest.Run(t.Context(), b.conn, statement); err == nil || !strings.Contains(err.Error(), "cannot") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	b.run("alter table albums rename cover to front")
	if report := b.make(); report.Made.Len() != 4 {
		t.Errorf("after another name of a column: %+v", report)
	}
	if got := value(t, s, "select front from albums limit 1"); got != "none" {
		t.Errorf("the column is %s", got)
	}
	b.text = head + "- {table: public.albums, is: keyed, by: user_id, ids: sequence}\n- {table: public.photos, is: left}\n"
	b.make()
	if got := b.relations(); len(got) != 2 {
		t.Errorf("with photos left behind: %q", got)
	}
	if got := value(t, s, "insert into albums (user_id) values (7) returning id"); got != "201" {
		t.Errorf("with ids: sequence the ID is %s", got)
	}
	if got := b.run("select count(*) from pg_trigger where tgname = 'kiloshard_adopt_record' and tgrelid = 'photos'::regclass"); got[0] != "0" {
		t.Error("photos is recorded")
	}
	if differences, err := provision.Verify(t.Context(), b.m); err != nil || len(differences) > 0 {
		t.Errorf("verify finds %v, %v", differences, err)
	}
}

// TestMakeRefuses holds that nothing is made where plan, map or database do not allow it, and that the error says why.
func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	const two = "create table follows (a bigint not null references users, b bigint not null references users); insert into follows values (1, 2);"
	for name, test := range map[string]struct {
		statements, file string
		change           func(*shards.Config)
		want             string
	}{
		"undecided":          {statements: two, want: "public.follows: by follows_b_fkey"},
		"another strategy":   {change: func(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.Hash} }, want: "strategy: {by: hash, hash: xxhash}; expected the strategy of adopt.yaml, {by: modulo}, of 4 shards"},
		"another divisor":    {change: func(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.Modulo, Of: 2} }, want: "expected the strategy of adopt.yaml, {by: modulo}, of 4 shards"},
		"no old_ids_below":   {change: func(c *shards.Config) { c.OldIDsBelow = 0 }, want: "old_ids_below: missing; expected old_ids_below: "},
		"a future one":       {change: func(c *shards.Config) { c.OldIDsBelow = 1 << 61 }, want: "old_ids_below: 2305843009213693952; expected "},
		"larger old IDs":     {statements: "insert into albums (id, user_id) values ((1::bigint << 50), 7);", want: "public.albums has the ID 1125899906842624, which names another shard than that of its row"},
		"a shard's own name": {statements: "create table schema_version (user_id bigint references users);", file: "- {table: public.schema_version, is: keyed, by: user_id}\n", want: "tables: public.schema_version; expected a name"},
		"two of one name":    {statements: "create schema s; create table s.albums (user_id bigint references users);", file: "- {table: s.albums, is: keyed, by: user_id}\n", want: "tables: public.albums and s.albums; expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, service+test.statements, func(c *shards.Config) {
				if test.change != nil {
					test.change(c)
				}
			})
			b.text += test.file
			report, err := views.Make(t.Context(), b.config())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, expected %s", err, test.want)
			}
			if report.Made.Len() > 0 || b.run("select to_regnamespace('kiloshard_adopt') is null")[0] != "t" {
				t.Errorf("something was made: %+v", report)
			}
		})
	}
}

// TestOneAtATime holds that a second command is refused while one works.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t, service)
	lock, err := ledger.Acquire(t.Context(), b.m.Hosts()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release(context.Background())
	if _, err := views.Make(t.Context(), b.config()); !errors.Is(err, ledger.ErrBusy) {
		t.Errorf("got %v", err)
	}
}

// TestInterrupted holds that a run whose context ends leaves each shard whole, and that another one continues; and so of the way back.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	b := setup(t, service)
	stopping := func(after int) (context.Context, *stopper) {
		ctx, cancel := context.WithCancel(t.Context())
		return ctx, &stopper{cancel: cancel, after: after}
	}
	ctx, progress := stopping(2)
	cfg := b.config()
	cfg.Progress, cfg.PerHost = progress, 1
	report, err := views.Make(ctx, cfg)
	if partial := (*shards.PartialError)(nil); !errors.As(err, &partial) || report.Made.Len() != 2 {
		t.Fatalf("made %s, %v", report.Made, err)
	}
	whole := func() string {
		return fmt.Sprint(b.run("select n.nspname, count(c.oid) from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relkind = 'v' where n.nspname ~ '^shard_' group by 1 order by 1"))
	}
	if got := whole(); got != "[shard_00000 3 shard_00001 3 shard_00002 0 shard_00003 0]" {
		t.Errorf("after an interrupt: %s", got)
	}
	status, err := views.Status(t.Context(), views.StatusConfig{Map: b.m})
	if err != nil || status.Missing.String() != "2-3" {
		t.Errorf("status: %+v, %v", status, err)
	}
	if report := b.make(); report.Made.String() != "2-3" || report.Kept.String() != "0-1" {
		t.Errorf("the second run: %+v", report)
	}
	ctx, progress = stopping(1)
	if _, err := views.Back(ctx, views.BackConfig{Map: b.m, PerHost: 1, Progress: progress}); err == nil {
		t.Error("an interrupted way back is complete")
	}
	if got := whole(); got != "[shard_00000 0 shard_00001 3 shard_00002 3 shard_00003 3]" {
		t.Errorf("after an interrupt of the way back: %s", got)
	}
	if report := b.make(); report.Made.String() != "0" {
		t.Errorf("forth again: %+v", report)
	}
	if _, err := views.Back(t.Context(), views.BackConfig{Map: b.m}); err != nil {
		t.Error(err)
	}
}

// stopper ends a context after some shards are finished.
type stopper struct {
	cancel context.CancelFunc
	after  int
}

func (s *stopper) Begin(string, int) {}

func (s *stopper) Finished(string, shards.Number, error, time.Duration) {
	if s.after--; s.after == 0 {
		s.cancel()
	}
}

func (s *stopper) End() {}
