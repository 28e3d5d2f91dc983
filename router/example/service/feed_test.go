package service_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// pages reads a list to its end, page by page.
func (a *api) pages(path string, limit int) (all []shards.ID) {
	a.t.Helper()
	for before := ""; ; {
		page := a.do(http.StatusOK, "GET", fmt.Sprintf("%s?limit=%d%s", path, limit, before), "", "")
		if page.Incomplete {
			a.t.Fatalf("%s is incomplete", path)
		}
		all = append(all, ids(page.Photos)...)
		if page.Next == 0 {
			return all
		}
		before = fmt.Sprint("&before=", page.Next)
	}
}

// Feeds are what one gets by putting the photos of all friends together and sorting them.
func TestFeedsAreThePhotosOfAllFriends(t *testing.T) {
	t.Parallel()
	a := setup(t)
	users := a.signUp(8)
	photos := map[shards.ID][]shards.ID{} // by user: the naive service
	for range 80 {
		user := users[rand.IntN(len(users))]
		photos[user] = append(photos[user], a.post(user, "x").ID)
	}
	for i, user := range users {
		friends := slices.Clone(users)
		rand.Shuffle(len(friends), func(i, j int) { friends[i], friends[j] = friends[j], friends[i] })
		friends = friends[:i]
		a.follow(user, friends...)
		if i > 0 { // one is unfollowed
			a.do(http.StatusNoContent, "DELETE", fmt.Sprintf("/users/%d/follow/%d", user, friends[0]), "", "")
			friends = friends[1:]
		}
		listed := a.do(http.StatusOK, "GET", fmt.Sprintf("/users/%d/friends", user), "", "").Friends
		var want []shards.ID
		for _, friend := range friends {
			want = append(want, photos[friend]...)
			if !slices.Contains(listed, fmt.Sprint(int64(friend))) {
				t.Errorf("user %d: friends %v, expected %d among them", user, listed, friend)
			}
		}
		slices.Sort(want)
		slices.Reverse(want)
		for _, limit := range []int{1 + rand.IntN(9), 100} {
			if got := a.pages(fmt.Sprintf("/users/%d/feed", user), limit); !slices.Equal(got, want) {
				t.Errorf("user %d: feed in pages of %d: %v, expected %v", user, limit, got, want)
			}
		}
		own := slices.Clone(photos[user])
		slices.Reverse(own)
		if got := a.pages(fmt.Sprintf("/users/%d/photos", user), 7); !slices.Equal(got, own) {
			t.Errorf("user %d: photos %v, expected %v", user, got, own)
		}
	}
}

// While friends post, a reader turns the pages: each photo that was there at the start is shown once, and none twice.
func TestPagingUnderInserts(t *testing.T) {
	t.Parallel()
	a := setup(t)
	users := a.signUp(5)
	reader, friends := users[0], users[1:]
	a.follow(reader, friends...)
	for round := range 3 {
		var there []shards.ID
		for _, friend := range friends {
			there = append(there, a.post(friend, "old").ID, a.post(friend, "old").ID)
		}
		stop := make(chan struct{})
		var posting sync.WaitGroup
		for _, friend := range friends {
			posting.Go(func() {
				for range 20 {
					r, err := a.send("POST", fmt.Sprintf("/users/%d/photos", friend), newKey(), `{"title": "new"}`)
					if err != nil || r.Status != http.StatusCreated {
						t.Errorf("answer %+v, %v", r, err)
						return
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		seen := a.pages(fmt.Sprintf("/users/%d/feed", reader), 3+round)
		close(stop)
		posting.Wait()
		falling := slices.IsSortedFunc(seen, func(a, b shards.ID) int { return cmp.Compare(b, a) })
		if !falling || len(slices.Compact(slices.Clone(seen))) != len(seen) {
			t.Errorf("round %d: photos are shown twice or out of order: %v", round, seen)
		}
		for _, id := range there {
			if !slices.Contains(seen, id) {
				t.Errorf("round %d: photo %d was there before and is not shown", round, id)
			}
		}
	}
}
