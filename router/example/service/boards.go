package service

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// Boards are what the objects of Pinterest's store make up. A board is in its user's shard. The keys of the requests that made
// boards are on as many shards as [Config.StoreShards] says.
func Boards(storeShards int) objects.Tables {
	return objects.Tables{Types: []string{"board"}, Mods: []objects.ModTable{boardsByRequest(storeShards)}}
}

func boardsByRequest(storeShards int) objects.ModTable {
	return objects.ModTable{Name: "boards_by_request", Shards: storeShards}
}

// board is the document of a board. A field more needs no migration.
type board struct {
	User   shards.ID   `json:"user"`
	Name   string      `json:"name"`
	Photos []shards.ID `json:"photos"`
}

type boardBody struct {
	ID   shards.ID `json:"id"`
	User shards.ID `json:"user"`
	Name string    `json:"name"`
	Kept []string  `json:"kept"`
}

func boardAnswer(status int, b objects.Object[board]) answer {
	body := boardBody{b.ID, b.Fields.User, b.Fields.Name, make([]string, len(b.Fields.Photos))}
	for i, id := range b.Fields.Photos {
		body.Kept[i] = fmt.Sprint(id)
	}
	return answer{status, body}
}

// makeBoard makes a board. A request that comes again finds the board that it made the first time, by the row of its key: of
// two that make one at the same time, or half of one, a single board has that row.
func (s *Service) makeBoard(r *http.Request) (answer, error) {
	ctx := r.Context()
	user, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	name, text, err := readName(r)
	if err != nil {
		return answer{}, err
	}
	key := fmt.Appendf(nil, "%d %s", user, text)
	made, err := s.boardOf.Get(ctx, key)
	if errors.Is(err, objects.ErrNotFound) {
		shard, errID := s.router.ForID(user)
		if errID != nil {
			return answer{}, errID
		}
		b, errNew := s.boards.CreateIn(ctx, shard, board{User: user, Name: name})
		if errNew != nil {
			return answer{}, errNew
		}
		var mine bool
		if made, mine, err = s.boardOf.PutIfAbsent(ctx, key, b.ID); err == nil && !mine {
			err = s.boards.Purge(ctx, b.ID)
		}
	}
	if err != nil {
		return answer{}, err
	}
	b, err := s.boards.Get(ctx, made.Value)
	if err != nil {
		return answer{}, err
	}
	return boardAnswer(http.StatusCreated, b), nil
}

func (s *Service) board(r *http.Request) (answer, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return answer{}, err
	}
	b, err := s.boards.Get(r.Context(), id)
	if err != nil {
		return answer{}, err
	}
	return boardAnswer(http.StatusOK, b), nil
}

// keep puts a photo on a board, once, however often it is said. Others who do so at the same time wait.
func (s *Service) keep(r *http.Request) (answer, error) {
	id, photo, err := pair(r, "photo")
	if err != nil {
		return answer{}, err
	}
	b, err := s.boards.Update(r.Context(), id, func(b *board) error {
		if !slices.Contains(b.Photos, photo) {
			b.Photos = append(b.Photos, photo)
		}
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	return boardAnswer(http.StatusOK, b), nil
}
