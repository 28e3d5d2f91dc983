package service

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/example/db"
	"github.com/kiloshard/kiloshard/shards"
)

// userBody is a user as clients see one. IDs are texts in JSON: JavaScript's numbers have 53 bits.
type userBody struct {
	ID   shards.ID `json:"id"`
	Name string    `json:"name"`
}

// signUp makes a user in the shard that the directory gives to the name. The directory gives a name one shard, however
// many ask at once, and there names are unique: so they are in all shards.
func (s *Service) signUp(r *http.Request) (answer, error) {
	name, key, err := readName(r)
	if err != nil {
		return answer{}, err
	}
	shard, err := s.router.ForNew(r.Context(), shards.TextKey(name))
	if err != nil {
		return answer{}, err
	}
	queries := db.New(shard)
	user, err := queries.CreateUser(r.Context(), db.CreateUserParams{Name: name, RequestKey: key})
	if errors.Is(err, pgx.ErrNoRows) { // the name is there
		if user, err = queries.UserByName(r.Context(), name); err == nil && user.RequestKey != key {
			return answer{}, refuse(http.StatusConflict, "the name %s is taken", name)
		}
	}
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, userBody{user.ID, user.Name}}, nil
}

// user finds a user by ID: the ID names the shard.
func (s *Service) user(r *http.Request) (answer, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	queries, err := s.at(id)
	if err != nil {
		return answer{}, err
	}
	user, err := queries.GetUser(r.Context(), id)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, userBody{user.ID, user.Name}}, nil
}

// at returns the queries on the shard that made an ID.
func (s *Service) at(id shards.ID) (*db.Queries, error) {
	shard, err := s.router.ForID(id)
	if err != nil {
		return nil, err
	}
	return db.New(shard), nil
}
