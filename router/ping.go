package router

import (
	"context"
	"errors"
	"sync"
	"time"
)

// HostPing is whether a host gave a sign of life.
type HostPing struct {
	Host string        // its name
	Took time.Duration // waiting for a connection included
	Err  error         // a [shards.HostError], or nil
}

// PingEach asks every host for a sign of life, all at once, until ctx ends. It returns how each answered, in the order of
// the map.
func (r *Router) PingEach(ctx context.Context) []HostPing {
	hosts := r.now.Load().hosts
	all := make([]HostPing, len(hosts))
	var wait sync.WaitGroup
	for i, h := range hosts {
		wait.Go(func() {
			start := time.Now()
			err := h.ping(ctx)
			all[i] = HostPing{Host: h.Name, Took: time.Since(start), Err: err}
		})
	}
	wait.Wait()
	return all
}

// Ping asks every host for a sign of life, all at once, until ctx ends. It returns a [shards.HostError] for each one
// that gave none, joined in the order of the map.
func (r *Router) Ping(ctx context.Context) error {
	var errs []error
	for _, ping := range r.PingEach(ctx) {
		errs = append(errs, ping.Err)
	}
	return errors.Join(errs...)
}
