package service

import (
	"net/http"
	"strconv"

	"github.com/kiloshard/kiloshard/router/example/db"
	"github.com/kiloshard/kiloshard/shards"
)

// pair returns two IDs of the path: the one under id, and another.
func pair(r *http.Request, other string) (a, b shards.ID, err error) {
	if a, err = pathID(r, "id"); err == nil {
		b, err = pathID(r, other)
	}
	return a, b, err
}

// follow makes somebody a friend. The friend may be in another shard, which is asked whether there is such a user; no
// transaction holds the two together, so that a friend who goes in that moment stays on the list.
func (s *Service) follow(r *http.Request) (answer, error) {
	user, friend, err := pair(r, "friend")
	if err != nil {
		return answer{}, err
	}
	there, err := s.at(friend)
	if err != nil {
		return answer{}, err
	}
	if _, err := there.GetUser(r.Context(), friend); err != nil {
		return answer{}, err
	}
	here, err := s.at(user)
	if err != nil {
		return answer{}, err
	}
	if err := here.AddFriend(r.Context(), db.AddFriendParams{UserID: user, FriendID: friend}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func (s *Service) unfollow(r *http.Request) (answer, error) {
	user, friend, err := pair(r, "friend")
	if err != nil {
		return answer{}, err
	}
	queries, err := s.at(user)
	if err != nil {
		return answer{}, err
	}
	if err := queries.RemoveFriend(r.Context(), db.RemoveFriendParams{UserID: user, FriendID: friend}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

// friends lists whom a user follows.
func (s *Service) friends(r *http.Request) (answer, error) {
	user, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	friends, err := s.friendsOf(r, user)
	if err != nil {
		return answer{}, err
	}
	ids := make([]string, len(friends))
	for i, id := range friends {
		ids[i] = strconv.FormatInt(int64(id), 10)
	}
	return answer{http.StatusOK, map[string][]string{"friends": ids}}, nil
}

func (s *Service) friendsOf(r *http.Request, user shards.ID) ([]shards.ID, error) {
	queries, err := s.at(user)
	if err != nil {
		return nil, err
	}
	friends, err := queries.Friends(r.Context(), user)
	if err == nil && len(friends) == 0 {
		_, err = queries.GetUser(r.Context(), user)
	}
	return friends, err
}
