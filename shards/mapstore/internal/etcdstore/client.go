package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

func (s *Store) clientConfig() (clientv3.Config, error) {
	store := s.cfg.Config.Store
	secure, err := loadTLS(s.cfg.Config, s.endpoints)
	if err != nil {
		return clientv3.Config{}, err
	}
	config := clientv3.Config{
		Endpoints: s.endpoints, TLS: secure,
		Username: store.User, Password: store.PasswordText(),
		DialTimeout:       s.cfg.Limit * 3 / 4, // before the limit of the callers that wait, to report why
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: s.cfg.Limit,
		Context: s.end, Logger: zapFor(s.cfg.Logger),
		DialOptions: []grpc.DialOption{
			// By default the pauses between attempts grow to two minutes.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: s.cfg.Limit,
			}),
			grpc.WithChainUnaryInterceptor(noteCause, logInWith(store.PasswordText, s.cfg.Limit)),
		},
	}
	if secure != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithTransportCredentials(
			newFreshTLS(secure, func() (*tls.Config, error) { return loadTLS(s.cfg.Config, s.endpoints) })))
	}
	return config, nil
}

// errClosed says that the store is closed.
var errClosed = errors.New("the store is closed")

// dial is an attempt to connect, and its client.
type dial struct {
	done   chan struct{} // closed at its end; guards what follows
	client *clientv3.Client
	err    error
}

// connect returns the store's only client. With a password, it waits for etcd's answer.
func (s *Store) connect(ctx context.Context) (*clientv3.Client, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	d := s.dial
	if d == nil {
		d = &dial{done: make(chan struct{})}
		s.dial = d
		s.dialing.Go(func() {
			defer close(d.done)
			config, cause := s.client, new(error)
			config.Context = context.WithValue(s.end, causeKey{}, cause)
			if d.client, d.err = clientv3.New(config); d.err != nil {
				d.err = betterCause(d.err, *cause)
				s.mu.Lock()
				s.dial = nil
				s.mu.Unlock()
			}
		})
	}
	s.mu.Unlock()
	select {
	case <-d.done:
		return d.client, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

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

// attempts is how many servers a request tries within the limit if they hang.
const attempts = 3

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

// causeKey is the key of a *error in a context. noteCause sets that error.
type causeKey struct{}

// noteCause keeps the error of gRPC, which says why there is no connection. The client of etcd turns it into a bare
// "context deadline exceeded".
func noteCause(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if cause, ok := ctx.Value(causeKey{}).(*error); ok && err != nil {
		*cause = err
	}
	return err
}

// betterCause returns err with the text of its cause.
func betterCause(err, cause error) error {
	if cause == nil {
		return err
	}
	text := status.Convert(cause).Message()
	if m := noConnection.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	return &causedError{err, text}
}

// noConnection is how gRPC says why there is no connection.
var noConnection = regexp.MustCompile(`connection error: desc = "(?:transport: Error while dialing: )?(.*)"$`)

// causedError is an error with the text of another.
type causedError struct {
	error
	text string
}

func (e *causedError) Error() string { return e.text }
func (e *causedError) Unwrap() error { return e.error }
