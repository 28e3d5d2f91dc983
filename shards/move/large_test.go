package move_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// largeOnes is what of large objects must be the same on both hosts.
const largeOnes = `select string_agg(format('%s %s %s %s %s', n, length(lo_get(picture)), md5(lo_get(picture)), (select concat(lomowner::regrole, ' ', lomacl) from pg_largeobject_metadata where oid = picture), obj_description(picture, 'pg_largeobject')), E'\n' order by n)
	from shard_00001.pictures where exists (select from pg_largeobject_metadata where oid = picture)`

const pictures = `
	create domain shard_00001.lo as oid;
	create table shard_00001.pictures (n int primary key, picture shard_00001.lo);
	insert into shard_00001.pictures select n, lo_from_bytea(0, decode(repeat(md5(n::text), n * 1000), 'hex')) from generate_series(1, 20) n;
	insert into shard_00001.pictures values (21, 4294967295), (22, null), (23, lo_create(0)), (24, (select picture from shard_00001.pictures where n = 1));
	do $$ declare o oid; begin
	  select picture into o from shard_00001.pictures where n = 2;
	  execute format('alter large object %s owner to pg_monitor; grant select on large object %1$s to public; comment on large object %1$s is ''second''', o);
	end $$;`

// The large objects that a shard refers to move with it, under the numbers that they have, owners, grants and comments included.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*move.RunConfig){
		"online":  func(*move.RunConfig) {},
		"offline": func(c *move.RunConfig) { c.Offline = true },
		"large":   func(c *move.RunConfig) { c.VerifyUnderFence, c.VerifyPause = 1, time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(0, fill+pictures)
			b.exec(1, `select lo_create(0)`) // somebody else's
			change(&b.cfg)
			b.interrupted("cutover: carried")
			made := b.text(1, `select array_agg(oid) from pg_largeobject_metadata`)
			if !strings.Contains(made, ",") {
				t.Fatalf("made before the interrupt: %s", made)
			}
			b.exec(0, `select lo_put(picture, 7, 'changed') from shard_00001.pictures where n = 5; insert into shard_00001.pictures values (25, lo_from_bytea(0, 'late')); delete from shard_00001.pictures where n = 3`)
			want := b.text(0, largeOnes)
			if _, err := move.Resume(t.Context(), b.cfg.Config); err != nil {
				t.Fatal(err)
			}
			b.equal("large objects", b.text(1, largeOnes), want)
			b.equal("how many there are", b.text(1, `select count(*) from pg_largeobject_metadata`), "22") // 20 + 1 + 1 - 1, and that of somebody else
			b.clean()
		})
	}
}

// A copy that takes longer than callers may wait is rolled back, and the next try copies again.
func TestPauseOverInCopy(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"cutover: copied", "cutover: copied large objects"} { // of the unlogged tables, and of the others
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(0, fill+pictures+`create unlogged table shard_00001.fast (n int); insert into shard_00001.fast values (7)`)
			b.cfg.MaxPause = time.Second
			tell, tries := b.cfg.Events, 0
			b.cfg.Events = func(e progress.Event) {
				tell(e)
				if point(e) == at {
					if tries++; tries == 1 {
						time.Sleep(b.cfg.MaxPause + time.Second) // which is longer than the lock timeout besides
					}
				}
			}
			want := b.text(0, largeOnes)
			if _, err := move.Run(t.Context(), b.cfg); err != nil {
				t.Fatal(err)
			}
			if tries < 2 {
				t.Errorf("%d tries, so that the test proves nothing", tries)
			}
			b.equal("large objects", b.text(1, largeOnes), want)
			b.equal("unlogged rows", b.text(1, `select sum(n) from shard_00001.fast`), "7")
			b.clean()
		})
	}
}

// A move that is taken back removes the large objects that it has made, and no others. One whose number is in use is refused.
func TestLargeObjectsTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill+pictures)
	b.interrupted("cutover: carried")
	b.exec(1, `select lo_create(0)`)
	if _, err := move.Abort(t.Context(), b.cfg.Config); err != nil {
		t.Fatal(err)
	}
	b.equal("large objects left", b.text(1, `select count(*) from pg_largeobject_metadata`), "1")
	b.clean()

	first := b.text(0, `select picture from shard_00001.pictures where n = 1`)
	b.exec(1, `select lo_create(`+first+`)`)
	problem := func(want string) {
		t.Helper()
		planned, err := move.Plan(t.Context(), b.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if found := strings.Join(planned[0].Problems, "\n"); !strings.Contains(found, want) {
			t.Errorf("no problem %q in %s", want, found)
		}
	}
	problem("pg-b: large objects " + first + " are there already, and the shard refers to such numbers")
	b.cfg.RollbackFor = time.Hour
	problem("pg-a: 21 large objects, whose changes are not replicated, so there is no way back for them")
	b.exec(0, `select lo_put(picture, 20000000, 'x') from shard_00001.pictures where n = 1`)
	problem("pg-a: unlogged tables and large objects take 22 MB, and are copied while callers wait")
}
