package rows_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
)

// history is the rows of a user.
type history struct {
	albums  map[int64]album
	photos  map[int64]photo
	tags    map[string]bool
	follows map[int64]bool
	moves   int64 // the sum of their amounts
	updates int64 // of the row of the user
}

type album struct {
	title  string
	photos int64
	cover  int64 // 0 for none
}

type photo struct {
	album int64
	title string
}

func (h history) clone() history {
	h.albums, h.photos, h.tags, h.follows = maps.Clone(h.albums), maps.Clone(h.photos), maps.Clone(h.tags), maps.Clone(h.follows)
	return h
}

func pick[V any](r *rand.Rand, from map[int64]V) int64 {
	keys := slices.Sorted(maps.Keys(from))
	if len(keys) == 0 {
		return 0
	}
	return keys[r.IntN(len(keys))]
}

func (h *history) renamePhoto(from, to int64) {
	h.photos[to] = h.photos[from]
	delete(h.photos, from)
	for tag := range h.tags {
		if rest, ok := strings.CutPrefix(tag, fmt.Sprintf("%d ", from)); ok {
			delete(h.tags, tag)
			h.tags[fmt.Sprintf("%d %s", to, rest)] = true
		}
	}
	for id, row := range h.albums { // the foreign key of covers follows no rename
		if row.cover == from {
			row.cover = to
			h.albums[id] = row
		}
	}
}

func (h *history) renameAlbum(from, to int64) {
	row := h.albums[from]
	for id, p := range h.photos {
		if p.album == from {
			p.album = to
			h.photos[id] = p
			row.photos++ // the trigger counts the new one up, and finds no old one
		}
	}
	delete(h.albums, from)
	h.albums[to] = row
}

func (h *history) deletePhoto(id int64, counted bool) {
	if counted {
		row := h.albums[h.photos[id].album]
		row.photos--
		h.albums[h.photos[id].album] = row
	}
	delete(h.photos, id)
	maps.DeleteFunc(h.tags, func(tag string, _ bool) bool { return strings.HasPrefix(tag, fmt.Sprintf("%d ", id)) })
	for a, row := range h.albums {
		if row.cover == id {
			row.cover = 0
			h.albums[a] = row
		}
	}
}

// check compares the histories with what the shards have, and the shards with the old tables.
func (all *clients) check(t *testing.T) {
	t.Helper()
	all.checkHistories(t, func(c *client) []string { return []string{all.b.m.Schema(c.shards), "public"} })
	all.b.checkShards(t)
}

// rows returns the rows of the user, by table, in the order of their texts.
func (h history) rows() map[string][]string {
	all := map[string][]string{"albums": nil, "photos": nil, "follows": nil}
	for id, a := range h.albums {
		all["albums"] = append(all["albums"], fmt.Sprintf("%d %s %d %d", id, a.title, a.photos, a.cover))
	}
	for id, p := range h.photos {
		all["photos"] = append(all["photos"], fmt.Sprintf("%d %d %s %d", id, p.album, p.title, len(p.title)))
	}
	for id := range h.follows {
		all["follows"] = append(all["follows"], fmt.Sprint(id))
	}
	all["tags"], all["users"], all["moves"] = slices.Collect(maps.Keys(h.tags)), []string{fmt.Sprint(h.updates)}, []string{fmt.Sprint(h.moves)}
	for _, texts := range all {
		slices.Sort(texts)
	}
	return all
}

// read returns the rows of the user that a schema has, in the form of [history.rows].
func (c *client) read(ctx context.Context, conn *pgx.Conn, schema string) (map[string][]string, error) {
	all := map[string][]string{}
	for table, query := range map[string]string{
		"albums":  "select id, title, photos, coalesce(cover, 0) from albums where user_id = %d",
		"photos":  "select p.id, album_id, p.title, size from photos p join albums a on a.id = p.album_id where user_id = %d",
		"tags":    "select photo_id, tag from tags t join photos p on p.id = photo_id join albums a on a.id = p.album_id where user_id = %d",
		"users":   "select updates from users where id = %d",
		"follows": "select followee from follows where follower = %d",
		"moves":   "select coalesce(sum(amount), 0) from moves where user_id = %d",
	} {
		texts, err := pgtest.Run(ctx, conn, "set search_path = "+schema+"; "+fmt.Sprintf(query, c.user))
		if err != nil {
			return nil, err
		}
		slices.Sort(texts)
		all[table] = texts
	}
	return all, nil
}

// unlike names the rows that differ, if any.
func unlike(got, want map[string][]string) string {
	var found strings.Builder
	for table := range want {
		if !slices.Equal(got[table], want[table]) {
			fmt.Fprintf(&found, " %s: got %d rows, expected %d: only got %v, only expected %v;", table, len(got[table]), len(want[table]), without(got[table], want[table]), without(want[table], got[table]))
		}
	}
	return found.String()
}

// checkHistories compares the histories with the rows in schemas.
func (all *clients) checkHistories(t *testing.T, schemas func(*client) []string) {
	t.Helper()
	for _, c := range all.all {
		conn, want := all.b.in(c.shards), c.history.rows()
		for _, schema := range schemas(c) {
			got, err := c.read(t.Context(), conn, schema)
			if err != nil {
				t.Fatal(err)
			}
			if found := unlike(got, want); found != "" {
				t.Errorf("user %d in %s:%s", c.user, schema, found)
			}
		}
	}
	for i := range all.shared {
		n, err := all.b.m.ForKey(int64(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		got, want := all.b.run(fmt.Sprintf("select balance, updates from %s.users where id = %d", all.b.m.Schema(n), i+1))[0], all.shared[i].Load()
		if got != fmt.Sprint(want, " ", want) {
			t.Errorf("user %d has balance and updates %s, expected %d", i+1, got, want)
		}
	}
}

// checkShards compares the shards with the old tables: no row is lost, doubled, or in the wrong shard.
func (b *bundle) checkShards(t *testing.T) {
	t.Helper()
	for table, shard := range map[string]string{
		"users": "t.id % 4", "albums": "t.user_id % 4", "follows": "t.follower % 4", "moves": "t.user_id % 4",
		"photos": "(select user_id % 4 from public.albums a where a.id = t.album_id)",
		"tags":   "(select user_id % 4 from public.albums a join public.photos p on a.id = p.album_id where p.id = t.photo_id)",
	} {
		var parts []string
		for n := range b.m.All().All() {
			parts = append(parts, fmt.Sprintf("select %d as n, t::text as r from %s.%s t", n, b.m.Schema(n), table))
		}
		now, old := "("+strings.Join(parts, " union all ")+")", fmt.Sprintf("select %s as n, t::text as r from public.%s t", shard, table)
		if found := b.run(fmt.Sprintf("(select 'only in the old table', * from (%s except all %s) o) union all (select 'only in the shard', * from (%[2]s except all %[1]s) n)", old, now)); len(found) > 0 {
			t.Errorf("%s: %d differences: %s", table, len(found), found[:min(5, len(found))])
		}
	}
}

func without(texts, others []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return slices.Contains(others, text) })
}
