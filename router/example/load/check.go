package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
)

// Checked is what came of the writes.
type Checked struct {
	Acknowledged int // writes, each of which was looked at
	GivenUp      int // writes whose users do not know whether they took effect
	GivenUpThere int // of them, those that did, once
	Lost         int // acknowledged writes that are not there
	Doubled      int // writes, acknowledged or not, that are there more than once
	Unread       int // things that could not be looked at: the service did not answer

	Examples []string // of what is wrong, a few
}

// OK tells whether all is as it should be.
func (c Checked) OK() bool { return c.Lost == 0 && c.Doubled == 0 && c.Unread == 0 }

// check is a check under way.
type check struct {
	*Load
	mu     sync.Mutex // guards what follows
	result Checked
}

// Check looks at every write that the service has acknowledged, by asking the service. Nobody may be writing.
func (l *Load) Check(ctx context.Context) Checked {
	c := &check{Load: l}
	names := slices.Collect(maps.Keys(l.books.names))
	inParallel(len(names), func(i int) { c.name(ctx, names[i], l.books.names[names[i]]) })

	authors := slices.Collect(maps.Keys(l.books.posts))
	inParallel(len(authors), func(i int) { c.posts(ctx, authors[i], l.books.posts[authors[i]]) })

	likes := byFirst(l.books.likes)
	liked := slices.Collect(maps.Keys(likes))
	inParallel(len(liked), func(i int) { c.likes(ctx, liked[i], likes[liked[i]]) })

	follows := byFirst(l.books.follows)
	followers := slices.Collect(maps.Keys(follows))
	inParallel(len(followers), func(i int) { c.follows(ctx, followers[i], follows[followers[i]]) })

	keeps := byFirst(l.books.keeps)
	boards := slices.Collect(maps.Keys(l.books.boards))
	inParallel(len(boards), func(i int) { c.board(ctx, boards[i], l.books.boards[boards[i]], keeps) })

	writers := slices.Collect(maps.Keys(l.books.notes))
	inParallel(len(writers), func(i int) { c.notes(ctx, writers[i], l.books.notes[writers[i]]) })
	return c.result
}

// byFirst puts together what is about the same thing.
func byFirst(pairs map[pair]outcome) map[shards.ID]map[shards.ID]outcome {
	all := map[shards.ID]map[shards.ID]outcome{}
	for p, o := range pairs {
		if all[p.one] == nil {
			all[p.one] = map[shards.ID]outcome{}
		}
		all[p.one][p.other] = o
	}
	return all
}

// found notes how many times a write is there.
func (c *check) found(times int, o outcome, what string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bad := ""
	switch {
	case o == acknowledged:
		c.result.Acknowledged++
		if times == 0 {
			c.result.Lost++
			bad = "lost: "
		}
	default:
		c.result.GivenUp++
		if times == 1 {
			c.result.GivenUpThere++
		}
	}
	if times > 1 {
		c.result.Doubled++
		bad = "doubled: "
	}
	if bad != "" && len(c.result.Examples) < 10 {
		c.result.Examples = append(c.result.Examples, bad+fmt.Sprintf(what, args...))
	}
}

// get asks the service, which is to have an answer or say that there is none.
func (c *check) get(ctx context.Context, into any, path string, args ...any) (there bool) {
	r := c.send(ctx, call{kind: "check", method: "GET", path: fmt.Sprintf(path, args...)}, into)
	switch r.failure {
	case "":
		return true
	case "404 Not Found":
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Unread++
	return false
}

// name checks a sign-up: the user is there, and the same request has the same answer.
func (c *check) name(ctx context.Context, name string, id shards.ID) {
	var user struct {
		ID   shards.ID `json:"id"`
		Name string
	}
	if id == 0 {
		c.found(0, unknown, "")
		return
	}
	times := 0
	if c.get(ctx, &user, "/users/%d", id) && user.Name == name {
		times++
		again := call{kind: "check", method: "POST", path: "/users", key: name, body: map[string]string{"name": name}}
		if r := c.send(ctx, again, &user); r.failure == "" && user.ID != id {
			times++
		}
	}
	c.found(times, acknowledged, "user %q, %d", name, id)
}

// posts checks the photos of a user: each by its ID, and all in the user's list.
func (c *check) posts(ctx context.Context, user shards.ID, posts map[string]shards.ID) {
	listed := map[string]int{}
	var page struct {
		Photos []struct{ Title string }
		Next   shards.ID `json:"next"`
	}
	for before := ""; ; before = fmt.Sprint("&before=", page.Next) {
		page.Photos, page.Next = nil, 0
		if !c.get(ctx, &page, "/users/%d/photos?limit=100%s", user, before) {
			break
		}
		for _, p := range page.Photos {
			listed[p.Title]++
		}
		if page.Next == 0 {
			break
		}
	}
	for title, id := range posts {
		times := listed[title]
		var p struct {
			User  shards.ID `json:"user"`
			Title string
		}
		if id != 0 && (!c.get(ctx, &p, "/photos/%d", id) || p.User != user || p.Title != title) {
			times = 0
		}
		c.found(times, outcome(id != 0), "photo %q, %d, of user %d", title, id, user)
	}
}

// likes checks a photo's likes, of which the service tells only how many there are.
func (c *check) likes(ctx context.Context, id shards.ID, users map[shards.ID]outcome) {
	var p struct{ Likes int }
	if !c.get(ctx, &p, "/photos/%d", id) {
		p.Likes = 0
	}
	sure := 0
	for _, o := range users {
		if o == acknowledged {
			sure++
		}
	}
	left := p.Likes
	for _, wanted := range []outcome{acknowledged, unknown} {
		for user, o := range users {
			if o == wanted {
				c.found(min(left, 1), o, "like of photo %d by user %d: %d likes of %d", id, user, p.Likes, sure)
				left = max(left-1, 0)
			}
		}
	}
	if left > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.result.Doubled += left
		c.result.Examples = append(c.result.Examples, fmt.Sprintf("photo %d has %d likes, %d users like it", id, p.Likes, sure))
	}
}

// follows checks a user's list of friends.
func (c *check) follows(ctx context.Context, user shards.ID, friends map[shards.ID]outcome) {
	var list struct{ Friends []string }
	c.get(ctx, &list, "/users/%d/friends", user)
	times := map[string]int{}
	for _, friend := range list.Friends {
		times[friend]++
	}
	for friend, o := range friends {
		c.found(times[strconv.FormatInt(int64(friend), 10)], o, "user %d follows %d", user, friend)
	}
}
