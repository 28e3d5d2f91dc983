package service

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// answer is what a request gets: a body that becomes JSON, or none if it is nil.
type answer struct {
	status int
	body   any
}

// endpoint answers one kind of request. Its error becomes an answer by [failure].
type endpoint func(r *http.Request) (answer, error)

// handle has an endpoint answer the requests of a pattern, within the limits of time and size, counted and logged.
func (s *Service) handle(pattern string, answered endpoint) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), s.timeLimit)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)

		a, err := answered(r)
		if err != nil {
			a = failure(err)
			if a.status == http.StatusServiceUnavailable || a.status == http.StatusGatewayTimeout {
				w.Header().Set("Retry-After", "1")
			}
		}
		errWrite := write(w, a)
		took := time.Since(started)
		s.requests.WithLabelValues(pattern, strconv.Itoa(a.status)).Observe(took.Seconds())
		s.logRequest(r, a.status, took, err, errWrite)
	})
}

// write writes an answer. Its error is one of the way to the client, who is gone.
func write(w http.ResponseWriter, a answer) error {
	if a.body == nil {
		w.WriteHeader(a.status)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	return json.NewEncoder(w).Encode(a.body)
}

// logRequest writes the access log. What went wrong inside is for the log alone: answers do not tell of hosts.
func (s *Service) logRequest(r *http.Request, status int, took time.Duration, errs ...error) {
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	attributes := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status),
		slog.Duration("took", took), slog.String("from", r.RemoteAddr),
	}
	for _, err := range errs {
		if err != nil {
			attributes = append(attributes, slog.Any("error", err))
		}
	}
	s.log.LogAttrs(r.Context(), level, "request", attributes...)
}

// newRequests counts requests and their time. Its labels are few whatever clients ask for: patterns, not paths.
func newRequests() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "photos_request_seconds",
		Help:    "Time from a request's arrival to its answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"route", "status"})
}
