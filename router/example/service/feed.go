package service

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/example/db"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// feed lists the newest photos of all whom a user follows. Each shard that has friends gives its newest, in order, and
// the merge takes the newest of all, by their IDs: that is the order of time, to some milliseconds between two shards.
//
// The next page goes by the ID of the last photo, so that photos which come in meanwhile move nothing: none is shown
// twice, none of those that were there is left out. When a host is down, the page has what the others have, and says so.
func (s *Service) feed(r *http.Request) (answer, error) {
	ctx := r.Context()
	user, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	p, err := pageOf(r)
	if err != nil {
		return answer{}, err
	}
	friends, err := s.friendsOf(r, user)
	if err != nil {
		return answer{}, err
	}
	set, err := many.OfIDs(s.router, friends...)
	if err != nil {
		return answer{}, err
	}
	query := many.Query[db.Photo]{
		SQL: db.NewestOf, Args: []any{numbers(friends), p.before, p.limit}, Scan: pgx.RowToStructByPos[db.Photo],
	}
	newer := func(a, b db.Photo) bool { return a.ID > b.ID }
	var photos []db.Photo
	for photo, err := range many.Merge(ctx, s.router, set, query, int(p.limit), newer) {
		var partial *shards.PartialError
		if errors.As(err, &partial) && ctx.Err() == nil { // it may be all of them: the user's own host has answered
			body := s.pageBody(photos, p)
			body.Incomplete = true
			s.log.WarnContext(ctx, "incomplete feed", "user", user, "error", err)
			return answer{http.StatusOK, body}, nil
		}
		if err != nil {
			return answer{}, err
		}
		photos = append(photos, photo)
	}
	return answer{http.StatusOK, s.pageBody(photos, p)}, nil
}

// numbers returns IDs as pgx knows to write an array of them in every mode.
func numbers(ids []shards.ID) []int64 {
	all := make([]int64, len(ids))
	for i, id := range ids {
		all[i] = int64(id)
	}
	return all
}
