package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
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
