package load

import (
	"context"
	"strconv"

	"github.com/kiloshard/kiloshard/shards"
)

// board checks a board, and the photos that are kept on it.
func (c *check) board(ctx context.Context, name string, made boardOf, keeps map[shards.ID]map[shards.ID]outcome) {
	var got struct {
		User shards.ID `json:"user"`
		Name string
		Kept []string
	}
	if made.id == 0 {
		c.found(0, unknown, "")
		return
	}
	times := 0
	if c.get(ctx, &got, "/boards/%d", made.id) && got.User == made.user && got.Name == name {
		times = 1
	}
	c.found(times, acknowledged, "board %q, %d, of user %d", name, made.id, made.user)
	kept := map[string]int{}
	for _, photo := range got.Kept {
		kept[photo]++
	}
	for photo, o := range keeps[made.id] {
		c.found(kept[strconv.FormatInt(int64(photo), 10)], o, "photo %d on board %d", photo, made.id)
	}
}

// notes checks the list of a user's notes.
func (c *check) notes(ctx context.Context, user shards.ID, texts map[string]outcome) {
	var list struct{ Notes []struct{ Text string } }
	c.get(ctx, &list, "/users/%d/notes", user)
	times := map[string]int{}
	for _, n := range list.Notes {
		times[n.Text]++
	}
	for text, o := range texts {
		c.found(times[text], o, "note %q of user %d", text, user)
	}
}
