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
	Took time.Duration // includes the wait for a connection
	Err  error         // a [shards.HostError], or nil
}

// PingEach pings all hosts at once and returns the results in the order of the map. ctx limits the wait.
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

// Ping pings all hosts at once, as a service may do at its start, because [New] does not connect. ctx limits the wait. It
// returns a [shards.HostError] for each host that did not answer, joined in the order of the map.
func (r *Router) Ping(ctx context.Context) error {
	var errs []error
	for _, ping := range r.PingEach(ctx) {
		errs = append(errs, ping.Err)
	}
	return errors.Join(errs...)
}
