package shards_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

// An ID is a string in JSON, since JavaScript rounds numbers above 2^53: this one would lead to the shard after its own.
func TestIDInJSON(t *testing.T) {
	t.Parallel()
	type photo struct {
		ID    shards.ID   `json:"id"`
		Owner *shards.ID  `json:"owner"`
		Tags  []shards.ID `json:"tags"`
		Old   shards.ID   `json:"old,string"`
	}
	owner := shards.ID(-1)
	text, err := json.Marshal(photo{ID: 281479271678975, Owner: &owner, Tags: []shards.ID{9007199254740993}, Old: 5})
	const want = `{"id":"281479271678975","owner":"-1","tags":["9007199254740993"],"old":"5"}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v, expected %s", text, err, want)
	}
	for _, text := range []string{
		want,
		`{"id":281479271678975,"owner":-1,"tags":[9007199254740993],"old":"5"}`,
	} {
		var got photo
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.ID != 281479271678975 || *got.Owner != -1 || got.Tags[0] != 9007199254740993 || got.Old != 5 {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	got := photo{ID: 7}
	if err := json.Unmarshal([]byte(`{"id":null,"owner":null}`), &got); err != nil || got.ID != 7 || got.Owner != nil {
		t.Errorf("null: got %+v, %v", got, err)
	}
	for _, text := range []string{`""`, `"1.0"`, `1.5`, `1e3`, `true`, `{}`, `"9223372036854775808"`, `9223372036854775808`, `" 1"`, `"0x1"`, `"1_0"`} {
		var id shards.ID
		if err := json.Unmarshal([]byte(text), &id); err == nil || !strings.Contains(err.Error(), "expected a whole number of 64 bits, or a string of one") {
			t.Errorf("%s: got %d, %v, expected an error", text, id, err)
		}
	}
}

func TestIDScans(t *testing.T) {
	t.Parallel()
	for _, src := range []any{int64(281479271678975), "281479271678975", []byte("281479271678975")} {
		var id shards.ID
		if err := id.Scan(src); err != nil || id != 281479271678975 {
			t.Errorf("%T: got %d, %v", src, id, err)
		}
	}
	for _, src := range []any{nil, 1.5, "", "photo", true} {
		var id shards.ID
		if err := id.Scan(src); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%v: got %d, %v, expected an error", src, id, err)
		}
	}
}

func TestIDJSONRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := shards.ID(rapid.Int64().Draw(t, "id"))
		text, err := json.Marshal(id)
		var back shards.ID
		if err != nil || json.Unmarshal(text, &back) != nil || back != id {
			t.Fatalf("%s: got %d, %v", text, back, err)
		}
	})
}
