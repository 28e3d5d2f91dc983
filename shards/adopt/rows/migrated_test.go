package rows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt/rows"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
)

// status returns the changes of the old tables that adopt status names.
func (b *bundle) status() []string {
	b.t.Helper()
	s, err := views.Status(b.t.Context(), views.StatusConfig{Map: b.m})
	if err != nil {
		b.t.Fatal(err)
	}
	return s.Changes
}

// refused holds that a command changes nothing, and names each of the texts.
func (b *bundle) refused(do func(context.Context, rows.Config) (rows.Result, error), texts ...string) {
	b.t.Helper()
	before := b.run("select gate from kiloshard_adopt.adoption")[0]
	result, err := do(b.t.Context(), b.config())
	wrong := (*rows.CheckError)(nil)
	if !errors.As(err, &wrong) || string(result.Gate) != before {
		b.t.Errorf("got %+v, %v", result, err)
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			b.t.Errorf("got %v, expected %s", err, text)
		}
	}
}

// TestMigrated changes tables of shards, and the old ones, once shards have tables of their own. What would break the mirrors is refused by Postgres,
// or by the commands.
func TestMigrated(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	cfg := b.config()
	cfg.Shards = shards.SetOf(1, 2)
	if _, err := rows.Tables(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if found := b.status(); len(found) > 0 {
		t.Errorf("status names %q", found)
	}
	for statement, want := range map[string]string{
		"alter table shard_00001.albums drop title": "2BP01", "alter table shard_00001.albums alter title type varchar(20)": "0A000",
		"alter table shard_00001.photos drop size": "2BP01", "alter table shard_00001.users alter balance type numeric": "0A000",
		"alter table public.albums drop title": "2BP01", "alter table public.albums alter title type varchar(20)": "0A000",
	} {
		if _, err := pgtest.Run(t.Context(), b.conn, statement); code(err) != want {
			t.Errorf("%s: got %v, expected %s", statement, err, want)
		}
	}
	b.run("alter table public.albums add note text; drop index public.photos_by_title; alter table public.follows rename to followers; create trigger twice before update on public.users for each row execute function touch()")
	b.refused(rows.Tables, "public.albums: column note was added", "public.photos: index photos_by_title was dropped")
	if found := strings.Join(b.status(), "; "); !strings.Contains(found, "public.follows: table was dropped") || !strings.Contains(found, "trigger twice was added") {
		t.Errorf("status names %q", found)
	}
	b.run("alter table public.albums drop note; create index photos_by_title on public.photos (title) where title like 'a%'; alter table public.followers rename to follows; drop trigger twice on public.users")
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	b.run("alter table shard_00001.tags rename to labels; alter table shard_00002.albums add note text; alter table shard_00003.users add check (balance < 1000)")
	b.refused(rows.Back, "shard_00001.tags is missing", "shard_00002.albums has other columns")
	one := b.in(1)
	for _, statement := range []string{"insert into labels values (3, 'new')", "update labels set tag = 'x' where photo_id = 7", "delete from labels where photo_id = 11", "insert into albums (user_id) values (5)"} {
		if _, err := pgtest.Run(t.Context(), one, statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	b.run("alter table shard_00001.labels rename to tags")
	b.checkShardsOf(t, 1)
	b.run("alter table shard_00001.tags rename to labels; alter table public.moves rename to movements; drop table shard_00003.follows")
	f, err := rows.Finish(t.Context(), b.config())
	if err != nil || !slices.Contains(f.Kept, rows.KeptIn+".movements") || len(f.Kept) != 6 {
		t.Fatalf("got %+v, %v", f, err)
	}
	b.run("insert into shard_00001.labels values (3, 'newer'); alter table shard_00001.albums drop title")
	if found := b.status(); len(found) > 0 {
		t.Errorf("status names %q", found)
	}
	const left = `select c.relname::text from pg_class c cross join aclexplode(c.relacl) g where g.grantee = 'kiloshard_adopt'::regrole and c.relnamespace <> 'kiloshard_adopt'::regnamespace
		union all select tgname from pg_trigger where tgname ~ 'kiloshard_adopt' union all select nspname from pg_namespace cross join aclexplode(nspacl) g where g.grantee = 'kiloshard_adopt'::regrole and nspname <> 'kiloshard_adopt'`
	if found := b.run(left); len(found) > 0 {
		t.Errorf("left: %q", found)
	}
}

// TestTwoSchemas holds that names which two schemas have are refused before anything changes: a shard has one schema.
func TestTwoSchemas(t *testing.T) {
	t.Parallel()
	b := setup(t, `create schema other; create table public.users (id bigint primary key); create table public.albums (id bigint primary key, user_id bigint references public.users);
		create table other.notes (id bigint primary key, user_id bigint references public.users, constraint albums_pkey unique (user_id)); create index newest on public.albums (id desc); create index newest on other.notes (id desc)`,
		"key: public.users.id\nstrategy: {by: modulo}\n")
	b.refused(rows.Tables, `"albums_pkey" is in schemas other and public`, `"newest" is in schemas other and public`)
	b.run("alter index other.newest rename to newest_note; alter table other.notes rename constraint albums_pkey to one_note")
	if found := b.status(); len(found) != 4 {
		t.Errorf("status names %q", found)
	}
}

// TestCopied holds that COPY writes to a table at each stage, if adopt.yaml says so.
func TestCopied(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions+"  - {table: public.photos, is: chained, through: photos_album_id_fkey, copy: true}\n")
	next := 5000
	copied := func(stage string) {
		t.Helper()
		var text strings.Builder
		for range 3 {
			next++
			fmt.Fprintf(&text, "%d\t4\tcopied %[1]d\n", next)
		}
		if _, err := b.in(1).PgConn().CopyFrom(t.Context(), strings.NewReader(text.String()), "copy photos (id, album_id, title) from stdin"); err != nil {
			t.Errorf("%s: %v", stage, err)
		}
		if got, want := b.run("select count(*) from public.photos where title like 'copied%'")[0], fmt.Sprint(next-5000); got != want {
			t.Errorf("%s: the old table has %s copied rows, expected %s", stage, got, want)
		}
	}
	copied("views")
	cfg := b.config()
	report := cfg.Report
	cfg.Report = func(e rows.Event) {
		if report(e); e.Kind == rows.Copying {
			copied("copying")
		}
	}
	if _, err := rows.Tables(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	copied("tables")
	b.checkShards(t)
	if _, err := rows.Back(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	copied("views again")
	if _, err := rows.Tables(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	b.checkShards(t)
	if _, err := rows.Finish(t.Context(), b.config()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.in(1).PgConn().CopyFrom(t.Context(), strings.NewReader("9000\t4\tcopied last\n"), "copy photos (id, album_id, title) from stdin"); err != nil {
		t.Error(err)
	}
	if found := b.run("select count(*) from shard_00001.photos where title like 'copied%'")[0]; found != "13" {
		t.Errorf("the shard has %s copied rows, expected 13", found)
	}
}
