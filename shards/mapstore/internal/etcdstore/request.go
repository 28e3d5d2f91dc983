package etcdstore

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// send sends one request, governed by ctx. Its errors say what was requested and where. An error is Unsent if nothing
// was sent.
func send[R any](ctx context.Context, s *Store, what string, request func(context.Context, *clientv3.Client) (R, error)) (R, error) {
	var none R
	cause := new(error)
	ctx = context.WithValue(ctx, causeKey{}, cause)
	client, err := s.connect(ctx)
	if errors.Is(err, errClosed) {
		return none, backend.Unsent(errClosed)
	}
	if err != nil {
		return none, backend.Unsent(s.failed(fmt.Errorf("%s: %w", what, backend.Late(err))))
	}
	response, err := request(ctx, client)
	switch {
	case err == nil:
		return response, nil
	case s.end.Err() != nil:
		return none, errClosed
	case ctx.Err() != nil:
		err = betterCause(ctx.Err(), *cause)
	}
	return none, s.failed(fmt.Errorf("%s: %w", what, backend.Late(err)))
}

// read reads keys. If a server hangs, it tries another one after a part of the limit.
func (s *Store) read(ctx context.Context, what, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	get := func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, key, options...)
	}
	for range attempts - 1 {
		part, cancel := context.WithTimeout(ctx, s.cfg.Limit/attempts)
		response, err := send(part, s, what, get)
		hangs := part.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !hangs {
			return response, s.withMembers(err)
		}
	}
	response, err := send(ctx, s, what, get)
	return response, s.withMembers(err)
}
