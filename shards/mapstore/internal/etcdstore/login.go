package etcdstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// attempts is how many servers a request tries within the limit if they hang.
const attempts = 3

// logInWith makes each login use the current password, while the client of etcd keeps its first one. If etcd refuses
// the current one, it tries the last one that was accepted, so that the password may change where it is kept before it
// changes in etcd. A login takes at most the limit.
func logInWith(password func() string, limit time.Duration) grpc.UnaryClientInterceptor {
	var accepted atomic.Pointer[string]
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		login, ok := req.(*etcdserverpb.AuthenticateRequest)
		if !ok {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		with := func(password string) error {
			login.Password = password
			return untilAnswered(ctx, limit, func(ctx context.Context) error { return invoke(ctx, method, login, reply, cc, opts...) })
		}
		earlier, now := accepted.Load(), password()
		err := with(now)
		switch {
		case err == nil:
			accepted.Store(&now)
		case earlier != nil && *earlier != now && errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
			if with(*earlier) == nil {
				return nil
			}
		}
		return err
	}
}

// untilAnswered sends a login again until etcd accepts or refuses it: each election fails the logins under way ("leader
// changed"), and etcd's client repeats reads, but no logins. An attempt takes a part of the limit, so that another server
// is tried if one hangs.
func untilAnswered(ctx context.Context, limit time.Duration, send func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var pause backend.Backoff
	for {
		attempt, end := context.WithTimeout(ctx, limit/attempts)
		err := send(attempt)
		end()
		switch status.Code(err) {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled: // the last one if the server sees the end of the attempt first
			if pause.Wait(ctx) {
				continue
			}
		}
		return err
	}
}
