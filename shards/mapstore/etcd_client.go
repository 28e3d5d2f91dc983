package mapstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	"github.com/kiloshard/kiloshard/shards"
)

func (s *etcd) clientConfig(cfg shards.Config) (clientv3.Config, error) {
	secure, err := etcdTLS(cfg, s.endpoints)
	if err != nil {
		return clientv3.Config{}, err
	}
	config := clientv3.Config{
		Endpoints: s.endpoints, TLS: secure,
		Username: cfg.Store.User, Password: cfg.Store.PasswordText(),
		DialTimeout:       s.opts.Limit * 3 / 4, // before the limit of the callers that wait, to report why
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: s.opts.Limit,
		Context: s.end, Logger: zapFor(s.opts.Logger),
		DialOptions: []grpc.DialOption{
			// By default the pauses between attempts grow to two minutes.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: s.opts.Limit,
			}),
			grpc.WithChainUnaryInterceptor(noteCause, logInWith(cfg.Store.PasswordText)),
		},
	}
	if secure != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithTransportCredentials(
			newFreshTLS(secure, func() (*tls.Config, error) { return etcdTLS(cfg, s.endpoints) })))
	}
	return config, nil
}

// logInWith makes each login use the current password and, if that is refused, the last one accepted: so the password may be
// changed where it is kept before it is changed in etcd. The client of etcd would keep the first.
func logInWith(password func() string) grpc.UnaryClientInterceptor {
	var accepted atomic.Pointer[string]
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		login, ok := req.(*etcdserverpb.AuthenticateRequest)
		if !ok {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		earlier, now := accepted.Load(), password()
		login.Password = now
		err := invoke(ctx, method, req, reply, cc, opts...)
		switch {
		case err == nil:
			accepted.Store(&now)
		case earlier != nil && *earlier != now && errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
			login.Password = *earlier
			if invoke(ctx, method, req, reply, cc, opts...) == nil {
				return nil
			}
		}
		return err
	}
}

// etcdDial is an attempt to connect, and its client.
type etcdDial struct {
	done   chan struct{} // closed at its end; guards what follows
	client *clientv3.Client
	err    error
}

// connect returns the only client of the store. With a password, it returns when etcd has answered.
func (s *etcd) connect(ctx context.Context) (*clientv3.Client, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	d := s.dial
	if d == nil {
		d = &etcdDial{done: make(chan struct{})}
		s.dial = d
		s.dialing.Go(func() {
			defer close(d.done)
			config, cause := s.config, new(error)
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

// send sends one request, governed by ctx. Its errors say what was requested and where. An unsentError says that nothing was
// sent.
func send[R any](ctx context.Context, s *etcd, what string, request func(context.Context, *clientv3.Client) (R, error)) (R, error) {
	var none R
	cause := new(error)
	ctx = context.WithValue(ctx, causeKey{}, cause)
	client, err := s.connect(ctx)
	if errors.Is(err, ErrClosed) {
		return none, &unsentError{ErrClosed}
	}
	if err != nil {
		return none, &unsentError{s.about(fmt.Errorf("%s: %w", what, orLate(err)))}
	}
	response, err := request(ctx, client)
	switch {
	case err == nil:
		return response, nil
	case s.end.Err() != nil:
		return none, ErrClosed
	case ctx.Err() != nil:
		err = betterCause(ctx.Err(), *cause)
	}
	return none, s.about(fmt.Errorf("%s: %w", what, orLate(err)))
}

// attempts is how many servers are tried within the limit if they hang.
const attempts = 3

// read reads keys. A server that hangs gets a part of the limit; then another one is tried.
func (s *etcd) read(ctx context.Context, what, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	get := func(ctx context.Context, c *clientv3.Client) (*clientv3.GetResponse, error) {
		return c.Get(ctx, key, options...)
	}
	for range attempts - 1 {
		part, cancel := context.WithTimeout(ctx, s.opts.Limit/attempts)
		response, err := send(part, s, what, get)
		hangs := part.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !hangs {
			return response, err
		}
	}
	return send(ctx, s, what, get)
}

// unsentError says that nothing was sent to the store.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// about adds the endpoints to an error. No endpoint has a password.
func (s *etcd) about(err error) error {
	return fmt.Errorf("etcd at %s: %w", strings.Join(s.endpoints, ", "), err)
}

// causeKey is the key of a *error in a context, which noteCause sets.
type causeKey struct{}

// noteCause keeps the error of gRPC, which says why there is no connection. The client of etcd turns it into a bare "context
// deadline exceeded".
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
