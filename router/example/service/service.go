package service

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router"
)

const (
	defaultTimeLimit = 5 * time.Second
	maxBody          = 64 << 10 // bytes
)

// Config says what a [Service] works with.
type Config struct {
	Router *router.Router // the caller's to close, after the service has ended

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
	requests  *prometheus.HistogramVec
	mux       *http.ServeMux
	ending    atomic.Bool
}

// New makes a service. The error is one of registering its metrics.
func New(cfg Config) (*Service, error) {
	if cfg.TimeLimit <= 0 {
		cfg.TimeLimit = defaultTimeLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		router: cfg.Router, timeLimit: cfg.TimeLimit, drain: cfg.Drain, log: cfg.Logger, requests: newRequests(), mux: http.NewServeMux(),
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
	return s, nil
}

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }
