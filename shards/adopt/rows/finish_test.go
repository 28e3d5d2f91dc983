package rows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// TestFinish ends an adoption while clients write, and drops the old tables.
func TestFinish(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	all := b.write(3)
	cfg := b.config()
	cfg.Shards = shards.SetOf(0, 1)
	if _, err := rows.Tables(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	wrong := (*rows.CheckError)(nil)
	if _, err := rows.Finish(t.Context(), cfg); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "shards 2-3 have no tables") {
		t.Errorf("got %v", err)
	}
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	b.run("create table public.notices (id int primary key, user_id bigint references public.users) partition by range (id); create table public.notices_1 partition of public.notices default")
	if _, err := rows.Finish(t.Context(), cfg); !errors.As(err, &wrong) || len(wrong.Problems) != 1 || !strings.HasPrefix(wrong.Problems[0], "foreign key notices_user_id_fkey of table public.notices refers to public.users,") {
		t.Errorf("got %v", err)
	}
	b.run("alter table public.notices drop constraint notices_user_id_fkey")
	cfg.KeepFor = time.Hour
	cfg.Drop = func([]string) error { t.Error("asked too early"); return nil }
	f, err := rows.Finish(t.Context(), cfg)
	if err != nil || len(f.Kept) != 6 || len(f.Dropped) > 0 || time.Until(f.Until) < 50*time.Minute {
		t.Fatalf("got %+v, %v", f, err)
	}
	if _, err := rows.Back(t.Context(), cfg); !errors.As(err, &wrong) {
		t.Errorf("back after finish: %v", err)
	}
	all.await(t, 50)
	all.end()
	all.checkHistories(t, func(c *client) []string { return []string{b.m.Schema(c.shards)} })
	if found := b.run("select tgname || ' ' || tgrelid::regclass from pg_trigger t join pg_class c on c.oid = tgrelid where not tgisinternal and tgname ~ 'kiloshard'"); len(found) > 0 {
		t.Errorf("triggers are left: %q", found)
	}
	b.run("create view public.report as select count(*) from kiloshard_adopt_old.users")
	cfg.KeepFor = 0
	refusal := errors.New("no")
	cfg.Drop = func([]string) error { return refusal }
	if _, err := rows.Finish(t.Context(), cfg); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	cfg.Drop = func([]string) error { return nil }
	if _, err := rows.Finish(t.Context(), cfg); code(err) != "2BP01" {
		t.Errorf("got %v, expected an error that names the view", err)
	}
	b.run("drop view public.report")
	if f, err := rows.Finish(t.Context(), cfg); err != nil || len(f.Dropped) != 6 {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := rows.Finish(t.Context(), cfg); !errors.Is(err, ledger.ErrNone) {
		t.Errorf("got %v", err)
	}
	if found := b.run("select nspname from pg_namespace where nspname ~ 'kiloshard_adopt'"); len(found) > 0 {
		t.Errorf("schemas are left: %q", found)
	}
}
