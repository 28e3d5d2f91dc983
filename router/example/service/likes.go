package service

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/example/db"
	"github.com/kiloshard/kiloshard/shards"
)

// like has a user like a photo, once, however often it is said.
func (s *Service) like(r *http.Request) (answer, error) {
	return s.changeLikes(r, 1, func(ctx context.Context, q *db.Queries, photo, user shards.ID) (int64, error) {
		return q.AddLike(ctx, db.AddLikeParams{PhotoID: photo, UserID: user})
	})
}

func (s *Service) unlike(r *http.Request) (answer, error) {
	return s.changeLikes(r, -1, func(ctx context.Context, q *db.Queries, photo, user shards.ID) (int64, error) {
		return q.RemoveLike(ctx, db.RemoveLikeParams{PhotoID: photo, UserID: user})
	})
}

// changeLikes changes the row of a like, and by as many rows as were changed the photo's count. The two are one
// transaction, which sees one moment: when others like the photo at the same time, it loses against them, and Retry runs
// it again. fn may therefore run several times, and changes nothing but the database.
func (s *Service) changeLikes(
	r *http.Request, by int32, fn func(ctx context.Context, q *db.Queries, photo, user shards.ID) (int64, error),
) (answer, error) {
	id, user, err := pair(r, "user")
	if err != nil {
		return answer{}, err
	}
	shard, err := s.router.ForID(id)
	if err != nil {
		return answer{}, err
	}
	var photo db.Photo
	oneMoment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
	err = router.Retry{Attempts: 10}.Tx(r.Context(), shard, oneMoment, func(tx pgx.Tx) error {
		queries := db.New(shard).WithTx(tx)
		rows, err := fn(r.Context(), queries, id, user)
		if err != nil {
			return err
		}
		photo, err = queries.CountLikes(r.Context(), db.CountLikesParams{ID: id, More: by * int32(rows)})
		return err
	})
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, s.photoBody(photo)}, nil
}
