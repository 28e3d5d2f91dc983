package provision_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/provision"
)

// Verify finds columns that get IDs and cannot hold them, under each name of their types.
func TestVerifyOfColumns(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Host(3), `set search_path = shard_00003;
		create domain small as int;
		create sequence photos_id_seq maxvalue 1125899906842623;
		create table users (id bigint primary key default next_id());
		create table photos (id bigint primary key default next_id('photos_id_seq'), owner bigint references users, n int, bucket int default next_id() % 100);
		create table likes (id bigserial primary key, photo numeric, users text default next_id(), parent int references likes);
		create table kept (id bigint primary key, owner bigint unique references users);`)
	checkComplete(t, m)
	on(t, m.Host(3), `set search_path = shard_00003;
		create table wrong (id int default next_id(), a real default next_id('photos_id_seq'), b double precision default shard_00003.next_id(), c small default next_id(),
			d smallint default next_id()::smallint, e int references users, f int references kept (owner), "G h" int references photos)`)
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(differences))
	for i, d := range differences {
		got[i] = d.Found
		if d.Kind != provision.KindColumn || d.Schema != "shard_00003" || d.Want != "bigint, since an ID has 64 bits" {
			t.Errorf("unexpected difference: %s", d)
		}
	}
	want := `wrong."G h" is integer, and refers to photos.id, which is an ID
wrong.a is real, and its default is an ID
wrong.b is double precision, and its default is an ID
wrong.c is shard_00003.small, and its default is an ID
wrong.d is smallint, and its default is an ID
wrong.e is integer, and refers to users.id, which is an ID
wrong.f is integer, and refers to kept.owner, which is an ID
wrong.id is integer, and its default is an ID`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nexpected\n%s", text, want)
	}
}
