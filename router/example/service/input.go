package service

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/shards"
)

const (
	maxText      = 200 // bytes of a name, a title, a key
	defaultLimit = 20  // of a page
	maxLimit     = 100
)

// pathID returns the ID that stands in the path under a name.
func pathID(r *http.Request, name string) (shards.ID, error) {
	return parseID(r.PathValue(name))
}

func parseID(text string) (shards.ID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "%q is no ID: expected a number of 64 bits", text)
	}
	return shards.ID(id), nil
}

// readBody reads a JSON object into a struct, and refuses fields that it does not have: a misspelled one would else be
// without effect.
func readBody(r *http.Request, into any) error {
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		_, err = body.Token()
	}
	var tooLong *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &tooLong):
		return err
	case err != nil:
		return refuse(http.StatusBadRequest, "the body: %v", err)
	}
	return refuse(http.StatusBadRequest, "the body goes on after its JSON")
}

// readName returns the name of what a request is to make, and its key.
func readName(r *http.Request) (name, key string, err error) {
	var body struct {
		Name string `json:"name"`
	}
	if err := readBody(r, &body); err != nil {
		return "", "", err
	}
	if err := wanted("name", body.Name); err != nil {
		return "", "", err
	}
	key, err = requestKey(r)
	return body.Name, key, err
}

// wanted refuses a text that is empty, too long, or none to Postgres.
func wanted(what, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return refuse(http.StatusBadRequest, "no %s", what)
	case len(text) > maxText:
		return refuse(http.StatusBadRequest, "the %s has %d bytes; expected %d at most", what, len(text), maxText)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return refuse(http.StatusBadRequest, "the %s has bytes that are not text; expected UTF-8 without a NUL", what)
	}
	return nil
}

// requestKey returns the key that a request has if it is sent again.
func requestKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	return key, wanted("Idempotency-Key in the header", key)
}

// page says which part of a list is asked for: up to limit things with IDs below before.
type page struct {
	before shards.ID
	limit  int32
}

func pageOf(r *http.Request) (page, error) {
	p := page{math.MaxInt64, defaultLimit}
	query := r.URL.Query()
	if text := query.Get("before"); text != "" {
		var err error
		if p.before, err = parseID(text); err != nil {
			return p, err
		}
	}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.ParseInt(text, 10, 32)
		if err != nil || limit < 1 || limit > maxLimit {
			return p, refuse(http.StatusBadRequest, "limit %q: expected 1 to %d", text, maxLimit)
		}
		p.limit = int32(limit)
	}
	return p, nil
}
