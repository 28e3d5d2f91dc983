package router

import (
	"context"
	"errors"
	"sync"
	"time"
)

// HostPing is the result of a ping of one host.
type HostPing struct {
	Host string        // its name
	Took time.Duration // waiting for a connection included
	Err  error         // a [shards.HostError], or nil
}

// PingEach pings every host, all at once, until ctx ends. It returns the results in the order of the map.
func (r *Router) PingEach(ctx context.Context) []HostPing {
	hosts := r.now.Load().hosts
	all := make([]HostPing, len(hosts))
	var wait sync.WaitGroup
	for i, h := range hosts {
		wait.Go(func() {
			start := time.Now()
			err := h.Ping(ctx)
			all[i] = HostPing{Host: h.Name, Took: time.Since(start), Err: err}
		})
	}
	wait.Wait()
	return all
}

// Ping pings every host, all at once, until ctx ends. It returns a [shards.HostError] for each one that did not answer,
// joined in the order of the map.
func (r *Router) Ping(ctx context.Context) error {
	var errs []error
	for _, ping := range r.PingEach(ctx) {
		errs = append(errs, ping.Err)
	}
	return errors.Join(errs...)
}
