package service_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/router/example/migrations"
	"github.com/kiloshard/kiloshard/router/example/service"
)

// The migration has the tables of both stores.
func TestMigrationOfStores(t *testing.T) {
	t.Parallel()
	for storeShards, files := range map[int]fs.FS{64: migrations.Files, 8: migrations.For(8)} {
		for file, want := range map[string]string{
			"005_boards.sql": service.Boards(storeShards).Migration(), "006_notes.sql": service.Notes.Migration(),
		} {
			if got, err := fs.ReadFile(files, file); err != nil || string(got) != want {
				t.Errorf("%s for %d shards: %v; expected:\n%s", file, storeShards, err, want)
			}
		}
	}
}

func TestBoards(t *testing.T) {
	t.Parallel()
	a := setup(t)
	user := a.signUp(1)[0]
	first, second := a.post(user, "a").ID, a.post(user, "b").ID
	path, key := fmt.Sprintf("/users/%d/boards", user), newKey()
	board := a.do(http.StatusCreated, "POST", path, key, `{"name": "dogs"}`)
	if again := a.do(http.StatusCreated, "POST", path, key, `{"name": "dogs"}`); again.ID != board.ID {
		t.Errorf("the same request again: board %d, expected %d", again.ID, board.ID)
	}
	for _, id := range []any{first, second, first} {
		a.do(http.StatusOK, "POST", fmt.Sprintf("/boards/%d/photos/%d", board.ID, id), "", "")
	}
	got := a.do(http.StatusOK, "GET", fmt.Sprint("/boards/", board.ID), "", "")
	if got.Name != "dogs" || got.User != user || len(got.Kept) != 2 || got.Kept[0] != fmt.Sprint(first) || got.Kept[1] != fmt.Sprint(second) {
		t.Errorf("got %+v, expected photos %d and %d", got, first, second)
	}
	a.do(http.StatusNotFound, "GET", fmt.Sprint("/boards/", board.ID+1), "", "")
	a.do(http.StatusNotFound, "GET", fmt.Sprint("/boards/", user), "", "")
}

func TestNotes(t *testing.T) {
	t.Parallel()
	a := setup(t)
	users := a.signUp(2)
	put := func(status, id int, body string, args ...any) {
		t.Helper()
		a.do(status, "PUT", fmt.Sprintf("/notes/%032x", id), "", fmt.Sprintf(body, args...))
	}
	const body = `{"user": "%d", "text": "%d"}`
	for i := range 6 {
		put(http.StatusNoContent, i, body, users[i%2], i)
	}
	put(http.StatusNoContent, 0, body, users[0], 0) // again
	put(http.StatusNoContent, 2, body, users[1], 2) // another one's now
	put(http.StatusBadRequest, 7, `{"user": "1"}`)
	a.do(http.StatusBadRequest, "PUT", "/notes/1", "", "")
	for i, want := range [][]string{{"0", "4"}, {"1", "2", "3", "5"}} {
		var texts []string
		for _, n := range a.do(http.StatusOK, "GET", fmt.Sprintf("/users/%d/notes", users[i]), "", "").Notes {
			texts = append(texts, n.Text)
		}
		slices.Sort(texts)
		if !slices.Equal(texts, want) {
			t.Errorf("user %d has notes %v, expected %v", i, texts, want)
		}
	}
}
