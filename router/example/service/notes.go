package service

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
)

// Notes are what the entities of FriendFeed's store make up: each is in the shard of its own ID, which its writer chooses, and
// found by its user in an index. [Config] says on how many shards. A property more needs no migration, and another index only a table.
var Notes = entities.Definition{Indexes: []entities.IndexDefinition{
	{Name: "notes_by_user", Properties: []entities.Property{{Name: "user", Type: entities.Text}}},
}}

type note struct {
	ID   string    `json:"id,omitempty"` // 32 hexadecimal digits; not in the document
	User shards.ID `json:"user"`
	Text string    `json:"text"`
}

// putNote writes a note, a new one or in the place of the one that has the ID.
func (s *Service) putNote(r *http.Request) (answer, error) {
	id, err := hex.DecodeString(r.PathValue("id"))
	if err != nil || len(id) != len(entities.ID{}) {
		return answer{}, refuse(http.StatusBadRequest, "%q is no ID of a note: expected 32 hexadecimal digits", r.PathValue("id"))
	}
	var n note
	if err := readBody(r, &n); err != nil {
		return answer{}, err
	}
	if err := wanted("text", n.Text); err != nil {
		return answer{}, err
	}
	n.ID = ""
	body, err := json.Marshal(n)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, s.notes.Put(r.Context(), entities.ID(id), body)
}

// notesOf lists the notes of a user.
func (s *Service) notesOf(r *http.Request) (answer, error) {
	all, err := s.notes.Index("notes_by_user").GetAll(r.Context(), r.PathValue("id"), entities.Page{})
	if err != nil {
		return answer{}, err
	}
	list := make([]note, len(all))
	for i, e := range all {
		if err := json.Unmarshal(e.Body, &list[i]); err != nil {
			return answer{}, err
		}
		list[i].ID = hex.EncodeToString(e.ID[:])
	}
	return answer{http.StatusOK, map[string]any{"notes": list}}, nil
}

// Clean does what requests that did not come to their end have left to do in the index of the notes, until ctx ends.
func (s *Service) Clean(ctx context.Context) {
	_ = s.notes.Clean(ctx, entities.CleanOptions{Log: func(err error) { // which returns no error then
		s.log.WarnContext(ctx, "cleaner", "error", err)
	}})
}
