package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve answers what comes in until ctx ends, and then goes in good order: the health says that it is ending, so that
// load balancers send nothing more; after Config.Drain no more connections are accepted, and requests under way are
// finished, for up to grace. Close the router after that. Serve closes the listener.
//
// The error is nil after an end in good order. It is [context.DeadlineExceeded] when there were requests left after
// grace; their connections have been closed.
func (s *Service) Serve(ctx context.Context, listener net.Listener, handler http.Handler, grace time.Duration) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.timeLimit,
		ReadTimeout:       2 * s.timeLimit,
		WriteTimeout:      3 * s.timeLimit,
		IdleTimeout:       time.Minute,
	}
	var failed error
	served := make(chan struct{})
	go func() {
		defer close(served)
		failed = server.Serve(listener)
	}()
	select {
	case <-served:
		return fmt.Errorf("serve: %w", failed)
	case <-ctx.Done():
	}

	s.ending.Store(true)
	server.SetKeepAlivesEnabled(false) // who sends on goes elsewhere with the next request
	select {
	case <-served:
		return fmt.Errorf("serve: %w", failed)
	case <-time.After(s.drain):
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(limited)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests left: %w", err), server.Close())
	}
	<-served
	return err
}
