package etcdstore

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// causeKey is the key of a *error in a context. noteCause sets that error.
type causeKey struct{}

// noteCause keeps the error of gRPC, which says why there is no connection. The client of etcd turns it into a bare
// "context deadline exceeded". The end of a request says nothing of its cause.
func noteCause(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if cause, ok := ctx.Value(causeKey{}).(*error); ok && err != nil && !isEnd(err) {
		*cause = err
	}
	return err
}

// isEnd reports whether an error only says that a request was ended, as its deadline does.
func isEnd(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.Canceled || s.Code() == codes.DeadlineExceeded && strings.HasPrefix(s.Message(), "stream terminated by RST_STREAM")
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

// codeOf returns the code of an error of etcd.
func codeOf(err error) codes.Code {
	var known interface{ Code() codes.Code } // to etcd's client
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}
