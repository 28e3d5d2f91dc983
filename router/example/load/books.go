package load

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// outcome is what is known of a write.
type outcome bool

const (
	acknowledged outcome = true
	unknown      outcome = false // it was given up, and may be there or not
)

// books are what was written, as far as the users know.
type books struct {
	mu     sync.Mutex // guards what follows
	prefix string     // of all tokens, so that a service can be used again
	tokens int
	users  []shards.ID
	photos []shards.ID

	names   map[string]shards.ID               // of those who signed up; 0 for unknown
	posts   map[shards.ID]map[string]shards.ID // by user and title; 0 for unknown
	likes   map[pair]outcome                   // photo and user
	follows map[pair]outcome                   // user and friend

	boards map[string]boardOf               // by name; without an ID for unknown
	all    []boardOf                        // that are known
	keeps  map[pair]outcome                 // board and photo
	notes  map[shards.ID]map[string]outcome // by user and text
}

// boardOf is a board and its user.
type boardOf struct{ id, user shards.ID }

type pair struct{ one, other shards.ID }

// newToken returns a text that stands for one write and no other.
func (b *books) newToken(what string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.prefix == "" {
		b.prefix = strconv.FormatInt(time.Now().UnixNano(), 36)
		b.names, b.posts = map[string]shards.ID{}, map[shards.ID]map[string]shards.ID{}
		b.likes, b.follows = map[pair]outcome{}, map[pair]outcome{}
		b.boards, b.keeps, b.notes = map[string]boardOf{}, map[pair]outcome{}, map[shards.ID]map[string]outcome{}
	}
	b.tokens++
	return fmt.Sprintf("%s %s-%d", what, b.prefix, b.tokens)
}

func (b *books) anyUser() shards.ID  { return anyOf(b, &b.users) }
func (b *books) anyPhoto() shards.ID { return anyOf(b, &b.photos) }
func (b *books) anyBoard() boardOf   { return anyOf(b, &b.all) }

// anyOf returns one of the books' lists, which grow, or nothing as long as there is none.
func anyOf[T any](b *books, list *[]T) (one T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(*list) > 0 {
		one = (*list)[rand.IntN(len(*list))]
	}
	return one
}

func (b *books) signedUp(name string, id shards.ID, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[name] = id
	if ok {
		b.users = append(b.users, id)
	}
}

func (b *books) posted(user shards.ID, title string, id shards.ID, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.posts[user] == nil {
		b.posts[user] = map[string]shards.ID{}
	}
	b.posts[user][title] = id
	if ok {
		b.photos = append(b.photos, id)
	}
}

func (b *books) liked(photo, user shards.ID, ok bool) { b.joined(&b.likes, pair{photo, user}, ok) }
func (b *books) followed(user, friend shards.ID, ok bool) {
	b.joined(&b.follows, pair{user, friend}, ok)
}
func (b *books) kept(board, photo shards.ID, ok bool) { b.joined(&b.keeps, pair{board, photo}, ok) }

// joined notes a pair. Once one of its writes was acknowledged, the pair is there.
func (b *books) joined(pairs *map[pair]outcome, p pair, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	(*pairs)[p] = (*pairs)[p] || outcome(ok)
}

func (b *books) madeBoard(name string, made boardOf, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.boards[name] = made
	if ok {
		b.all = append(b.all, made)
	}
}

func (b *books) noted(user shards.ID, text string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notes[user] == nil {
		b.notes[user] = map[string]outcome{}
	}
	b.notes[user][text] = outcome(ok)
}
