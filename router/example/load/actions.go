package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// The kinds of requests.
const (
	signUp = "sign up"
	post   = "post"
	like   = "like"
	follow = "follow"
	board  = "board"
	keep   = "keep"
	note   = "note"
	feed   = "feed"
	photo  = "photo"
)

// kinds are in the order of the report, with how many of a hundred requests are of each.
var kinds = []struct {
	name  string
	share int
	write bool
}{
	{signUp, 3, true},
	{post, 18, true},
	{like, 10, true},
	{follow, 4, true},
	{board, 3, true},
	{keep, 5, true},
	{note, 7, true},
	{feed, 28, false},
	{photo, 22, false},
}

func isWrite(kind string) bool {
	for _, k := range kinds {
		if k.name == kind {
			return k.write
		}
	}
	return false
}

// result is how a request ended.
type result struct {
	kind    string
	host    string // of the user or photo that it is about; "" if that is not known
	failure string // "" for success
	tries   int

	incomplete bool // of a feed
}

// one makes one request that was due at a moment.
func (l *Load) one(ctx context.Context, due time.Duration) {
	actions := map[string]func(context.Context) result{
		signUp: l.signUp, post: l.post, like: l.like, follow: l.follow, board: l.board, keep: l.keep, note: l.writeNote, feed: l.feed, photo: l.photo,
	}
	at := rand.IntN(100)
	for _, k := range kinds {
		if at -= k.share; at < 0 {
			r := actions[k.name](ctx)
			if ctx.Err() == nil {
				l.note(r, due)
			}
			return
		}
	}
}

func (l *Load) signUp(ctx context.Context) result {
	name := l.books.newToken("user")
	var user struct {
		ID shards.ID `json:"id"`
	}
	r := l.send(ctx, call{kind: signUp, method: "POST", path: "/users", key: name, body: map[string]string{"name": name}}, &user)
	if r.failure == "" {
		r.host = l.cfg.HostOf(user.ID)
	}
	l.books.signedUp(name, user.ID, r.failure == "")
	return r
}

func (l *Load) post(ctx context.Context) result {
	user := l.books.anyUser()
	title := l.books.newToken("photo")
	var made struct {
		ID shards.ID `json:"id"`
	}
	r := l.send(ctx, call{
		kind: post, about: user, method: "POST", path: fmt.Sprintf("/users/%d/photos", user),
		key: title, body: map[string]string{"title": title},
	}, &made)
	l.books.posted(user, title, made.ID, r.failure == "")
	return r
}

func (l *Load) like(ctx context.Context) result {
	user, liked := l.books.anyUser(), l.books.anyPhoto()
	path := fmt.Sprintf("/photos/%d/likes/%d", liked, user)
	r := l.send(ctx, call{kind: like, about: liked, method: "POST", path: path}, nil)
	l.books.liked(liked, user, r.failure == "")
	return r
}

func (l *Load) follow(ctx context.Context) result {
	user, friend := l.books.anyUser(), l.books.anyUser()
	path := fmt.Sprintf("/users/%d/follow/%d", user, friend)
	r := l.send(ctx, call{kind: follow, about: user, method: "POST", path: path}, nil)
	l.books.followed(user, friend, r.failure == "")
	return r
}

func (l *Load) board(ctx context.Context) result {
	user := l.books.anyUser()
	name := l.books.newToken("board")
	var made struct {
		ID shards.ID `json:"id"`
	}
	r := l.send(ctx, call{
		kind: board, about: user, method: "POST", path: fmt.Sprintf("/users/%d/boards", user),
		key: name, body: map[string]string{"name": name},
	}, &made)
	l.books.madeBoard(name, boardOf{made.ID, user}, r.failure == "")
	return r
}

func (l *Load) keep(ctx context.Context) result {
	b, kept := l.books.anyBoard(), l.books.anyPhoto()
	r := l.send(ctx, call{kind: keep, about: b.user, method: "POST", path: fmt.Sprintf("/boards/%d/photos/%d", b.id, kept)}, nil)
	l.books.kept(b.id, kept, r.failure == "")
	return r
}

func (l *Load) writeNote(ctx context.Context) result {
	user := l.books.anyUser()
	text := l.books.newToken("note")
	r := l.send(ctx, call{
		kind: note, method: "PUT", path: fmt.Sprintf("/notes/%016x%016x", rand.Uint64(), rand.Uint64()),
		body: map[string]string{"user": fmt.Sprint(user), "text": text},
	}, nil)
	l.books.noted(user, text, r.failure == "")
	return r
}

func (l *Load) feed(ctx context.Context) result {
	user := l.books.anyUser()
	var page struct{ Incomplete bool }
	r := l.send(ctx, call{kind: feed, about: user, method: "GET", path: fmt.Sprintf("/users/%d/feed", user)}, &page)
	r.incomplete = page.Incomplete
	return r
}

func (l *Load) photo(ctx context.Context) result {
	id := l.books.anyPhoto()
	return l.send(ctx, call{kind: photo, about: id, method: "GET", path: fmt.Sprintf("/photos/%d", id)}, nil)
}
