package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// Swap makes the version that next proposes the current one, if that has number from.
func (s *Store) Swap(ctx context.Context, from int, next backend.Propose) (*backend.Version, error) {
	now, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	if found := backend.NumberOf(now.version); found != from {
		return nil, &backend.ConflictError{Found: found}
	}
	v, err := next(now.version)
	if err != nil {
		return nil, err
	}
	if err := s.commit(ctx, now, now.record(v)); err != nil {
		return nil, err
	}
	return v, nil
}

// Check returns the error that Swap would return for next. It also sends the change under a condition that does not
// hold: etcd checks rights, size and space first.
func (s *Store) Check(ctx context.Context, next backend.Propose) error {
	now, err := s.current(ctx)
	if err != nil {
		return err
	}
	v, err := next(now.version)
	if err != nil {
		return err
	}
	r := now.record(v)
	text, err := r.encode()
	if err != nil {
		return err
	}
	const never = -1 // a revision that no key has
	now.mod = never
	_, err = s.commitOnce(ctx, now, r.Version, text)
	return refusal(err, r)
}

// record returns the record of the version that follows, and sets the version's time.
func (now state) record(v *backend.Version) record {
	v.At = time.Now().UTC().Truncate(time.Microsecond)
	if now.version != nil && v.At.Before(now.version.At) {
		v.At = now.version.At
	}
	return record{Version: v.Number, At: v.At, By: v.By, Why: v.Why, Change: rand.Text(), Map: string(v.Document)}
}

// commit makes a record the current version.
//
// After a lost connection it sends the transaction again until there is an answer. The transaction takes effect at most
// once, because it changes what it compares. If it fails, the key of the version shows which change won.
func (s *Store) commit(ctx context.Context, now state, r record) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	unknown := false // a change was sent and not answered
	var pause backend.Backoff
	for {
		response, err := s.commitOnce(ctx, now, r.Version, text)
		switch {
		case err == nil && response.Succeeded:
			return nil
		case err == nil:
			return s.lost(response, r)
		case isUnanswered(err):
			unknown = true
		case !unknown || errors.Is(err, rpctypes.ErrRequestTooLarge):
			return refusal(err, r)
		}
		if !pause.Wait(ctx) || s.end.Err() != nil {
			return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, s.withMembers(err))
		}
	}
}

func (s *Store) commitOnce(ctx context.Context, now state, number int, text string) (*clientv3.TxnResponse, error) {
	// A part of the limit, so that another server is tried if one hangs.
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limit/attempts)
	defer cancel()
	return send(ctx, s, "change the map", func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.mapKey()), "=", now.mod)).
			Then(clientv3.OpPut(s.mapKey(), text), clientv3.OpPut(s.historyKey(number), text)).
			Else(clientv3.OpGet(s.mapKey()), clientv3.OpGet(s.historyKey(number))).
			Commit()
	})
}

// lost returns nil if the transaction lost to an earlier attempt of the same change, and the conflict otherwise.
func (s *Store) lost(response *clientv3.TxnResponse, r record) error {
	current, same := response.Responses[0].GetResponseRange().Kvs, response.Responses[1].GetResponseRange().Kvs
	if len(same) > 0 {
		if winner, err := s.decodeRecord(same[0]); err == nil && winner.Change == r.Change {
			return nil
		}
	}
	if len(current) == 0 {
		return &backend.ConflictError{}
	}
	winner, err := s.decodeRecord(current[0])
	if err != nil {
		return err
	}
	return &backend.ConflictError{Found: winner.Version}
}

// refusal marks the errors with which etcd refuses a record: for its content, its size, or a right that the user lacks.
func refusal(err error, r record) error {
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return backend.Refusal(fmt.Errorf(
			"%w: the map, of %d bytes, is in it twice; expected that to be less than etcd's --max-request-bytes, 1.5 MiB by default", err, len(r.Map)))
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied:
		return backend.Refusal(err)
	}
	return err
}

// isUnanswered reports whether the outcome of a request is unknown after an error. It is known if etcd refused the
// request, or if the request was not sent.
func isUnanswered(err error) bool {
	if backend.IsUnsent(err) {
		return false
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted, codes.FailedPrecondition:
		return false
	}
	return true
}
