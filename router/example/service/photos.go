package service

import (
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/example/db"
	"github.com/kiloshard/kiloshard/shards"
)

type photoBody struct {
	ID    shards.ID `json:"id"`
	User  shards.ID `json:"user"`
	Title string    `json:"title"`
	Likes int32     `json:"likes"`
	At    time.Time `json:"at"` // which is in the ID
}

func (s *Service) photoBody(p db.Photo) photoBody {
	return photoBody{p.ID, p.UserID, p.Title, p.Likes, s.router.Map().Time(p.ID)}
}

// pageBody is a part of a list. Next is what to ask for the next part with, as before; 0 at the end.
type pageBody struct {
	Photos     []photoBody `json:"photos"`
	Next       shards.ID   `json:"next,omitzero"`
	Incomplete bool        `json:"incomplete,omitempty"` // a host is down, and photos from there are lacking
}

func (s *Service) pageBody(photos []db.Photo, p page) pageBody {
	body := pageBody{Photos: make([]photoBody, len(photos))}
	for i, photo := range photos {
		body.Photos[i] = s.photoBody(photo)
	}
	if len(photos) == int(p.limit) {
		body.Next = photos[len(photos)-1].ID
	}
	return body
}

// post makes a photo. A request that comes again finds the photo that it made the first time.
func (s *Service) post(r *http.Request) (answer, error) {
	user, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	var body struct {
		Title string `json:"title"`
	}
	if err := readBody(r, &body); err != nil {
		return answer{}, err
	}
	if err := wanted("title", body.Title); err != nil {
		return answer{}, err
	}
	key, err := requestKey(r)
	if err != nil {
		return answer{}, err
	}
	queries, err := s.at(user)
	if err != nil {
		return answer{}, err
	}
	photo, err := queries.CreatePhoto(r.Context(), db.CreatePhotoParams{UserID: user, Title: body.Title, RequestKey: key})
	if errors.Is(err, pgx.ErrNoRows) { // it is there: the insert has waited for it to be committed
		photo, err = queries.PhotoByRequest(r.Context(), db.PhotoByRequestParams{UserID: user, RequestKey: key})
		if err == nil && photo.Title != body.Title {
			return answer{}, refuse(http.StatusConflict, "another photo was posted with this Idempotency-Key")
		}
	}
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, s.photoBody(photo)}, nil
}

// photo finds a photo by ID: the ID names the shard.
func (s *Service) photo(r *http.Request) (answer, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	queries, err := s.at(id)
	if err != nil {
		return answer{}, err
	}
	photo, err := queries.GetPhoto(r.Context(), id)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, s.photoBody(photo)}, nil
}

// photos lists the photos of a user, newest first.
func (s *Service) photos(r *http.Request) (answer, error) {
	user, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	p, err := pageOf(r)
	if err != nil {
		return answer{}, err
	}
	queries, err := s.at(user)
	if err != nil {
		return answer{}, err
	}
	photos, err := queries.PhotosOfUser(r.Context(), db.PhotosOfUserParams{UserID: user, Before: p.before, Page: p.limit})
	if err == nil && len(photos) == 0 {
		_, err = queries.GetUser(r.Context(), user) // nobody's list is no empty list
	}
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, s.pageBody(photos, p)}, nil
}
