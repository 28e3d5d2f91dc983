package service

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	defaultTimeLimit = 5 * time.Second
	maxBody          = 64 << 10 // bytes

	defaultStoreShards = 64
)

// Config says what a [Service] works with.
type Config struct {
	Router *router.Router // the caller's to close, after the service has ended

	// StoreShards is how many shards, from 0 up, have notes, and the keys of boards. It must never change: the shards refuse
	// another number. Defaults to 64, which the migration 005_boards.sql has.
	StoreShards int

	// TimeLimit is how long a request may take. Defaults to 5 s.
	TimeLimit time.Duration

	// Drain is how long the service goes on answering after it was told to end, while Ready says so: as long as load
	// balancers need to notice. Defaults to no time.
	Drain time.Duration

	// Metrics is where the service registers what it measures. Defaults to nowhere.
	Metrics prometheus.Registerer

	// Logger gets a line for each request, and what went wrong. Defaults to silence.
	Logger *slog.Logger
}

// Service answers requests. It is safe for concurrent use.
type Service struct {
	router    *router.Router
	timeLimit time.Duration
	drain     time.Duration
	log       *slog.Logger
	boards    *objects.Type[board]
	boardOf   *objects.Mod[shards.ID] // by the user and the key of the request that made it
	notes     *entities.Store
	requests  *prometheus.HistogramVec
	mux       *http.ServeMux
	ending    atomic.Bool
}

// New makes a service. The error is one of registering its metrics, of a map without the type board or with fewer shards than StoreShards, or of
// notes that have another definition in the shards.
func New(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.TimeLimit <= 0 {
		cfg.TimeLimit = defaultTimeLimit
	}
	if cfg.StoreShards <= 0 {
		cfg.StoreShards = defaultStoreShards
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		router: cfg.Router, timeLimit: cfg.TimeLimit, drain: cfg.Drain, log: cfg.Logger, requests: newRequests(), mux: http.NewServeMux(),
	}
	var err error
	if s.boards, err = objects.Open(cfg.Router, "board", objects.Options[board]{}); err != nil {
		return nil, err
	}
	if s.boardOf, err = objects.OpenMod[shards.ID](cfg.Router, boardsByRequest(cfg.StoreShards)); err != nil {
		return nil, err
	}
	notes := Notes
	notes.Shards = cfg.StoreShards
	if s.notes, err = entities.Open(ctx, cfg.Router, notes); err != nil {
		return nil, err
	}
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(s.requests); err != nil {
			return nil, err
		}
	}
	s.handle("POST /users", s.signUp)
	s.handle("GET /users/{id}", s.user)
	s.handle("POST /users/{id}/photos", s.post)
	s.handle("GET /users/{id}/photos", s.photos)
	s.handle("GET /users/{id}/feed", s.feed)
	s.handle("GET /users/{id}/friends", s.friends)
	s.handle("POST /users/{id}/follow/{friend}", s.follow)
	s.handle("DELETE /users/{id}/follow/{friend}", s.unfollow)
	s.handle("GET /photos/{id}", s.photo)
	s.handle("POST /photos/{id}/likes/{user}", s.like)
	s.handle("DELETE /photos/{id}/likes/{user}", s.unlike)
	s.handle("POST /users/{id}/boards", s.makeBoard)
	s.handle("GET /boards/{id}", s.board)
	s.handle("POST /boards/{id}/photos/{photo}", s.keep)
	s.handle("PUT /notes/{id}", s.putNote)
	s.handle("GET /users/{id}/notes", s.notesOf)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }
