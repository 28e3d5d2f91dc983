package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// membersLimit is how long members have to answer when etcd has not.
const membersLimit = time.Second

// member is what one endpoint answers.
type member struct {
	endpoint string
	answers  bool
	text     string // what it says of itself, or why it does not answer
}

// withMembers adds to the error of a request that etcd did not answer what each endpoint answers. It returns other errors as they are.
func (s *Store) withMembers(err error) error {
	if err == nil || errors.Is(err, errClosed) || errors.Is(err, context.Canceled) || s.end.Err() != nil {
		return err
	}
	if !errors.Is(err, backend.ErrNoAnswer) && codeOf(err) != codes.Unavailable {
		return err
	}
	all := s.members()
	var texts []string
	for _, m := range all {
		texts = append(texts, m.endpoint+" "+m.text)
	}
	if len(all) == 0 || len(all) == 1 && !all[0].answers {
		return err // which says so
	}
	return fmt.Errorf("%w; %s; expected a majority of the members to answer and to know a leader", err, strings.Join(texts, ", "))
}

// members asks each endpoint whether it knows a leader.
func (s *Store) members() []member {
	all := make([]member, len(s.endpoints))
	ctx, cancel := context.WithTimeout(s.end, membersLimit)
	defer cancel()
	config := s.client
	config.Username, config.Password = "", "" // a login takes a majority
	config.Context, config.MaxUnaryRetries = ctx, 1
	config.DialOptions = append(slices.Clone(config.DialOptions), grpc.WithChainUnaryInterceptor(failFast))
	client, err := clientv3.New(config)
	if err != nil {
		return nil
	}
	defer func() { _ = client.Close() }() // it has done its work
	var asked sync.WaitGroup
	for i, endpoint := range s.endpoints {
		asked.Go(func() {
			cause := new(error)
			_, err := client.Status(context.WithValue(clientv3.WithRequireLeader(ctx), causeKey{}, cause), endpoint)
			all[i] = memberOf(endpoint, err, *cause)
		})
	}
	asked.Wait()
	return all
}

// memberOf returns what an endpoint has answered. That it knows no leader comes before what the user may ask, and any refusal is an answer.
func memberOf(endpoint string, err, cause error) member {
	switch code := codeOf(err); {
	case err == nil, code == codes.InvalidArgument, code == codes.Unauthenticated, code == codes.PermissionDenied, code == codes.FailedPrecondition:
		return member{endpoint, true, "knows a leader"}
	case errors.Is(err, rpctypes.ErrNoLeader):
		return member{endpoint, true, "knows no leader"}
	case code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded):
		return member{endpoint, false, "does not answer"}
	}
	return member{endpoint, false, "fails: " + betterCause(err, cause).Error()}
}

// failFast makes requests fail when there is no connection, while those of etcd's client wait for one.
func failFast(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(slices.Clone(opts), grpc.WaitForReady(false))...)
}
