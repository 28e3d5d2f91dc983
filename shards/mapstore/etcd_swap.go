package mapstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Swap implements [Store].
func (s *etcd) Swap(ctx context.Context, from int, next Change) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	now, err := s.present(ctx, s.documents.keepUnset())
	if err != nil && !errors.Is(err, ErrNoMap) {
		return Entry{}, err
	}
	if version := now.entry.version(); version != from {
		return Entry{}, &ConflictError{Wanted: from, Found: version}
	}
	entry, document, err := s.documents.check(now.entry, next)
	if err != nil {
		return Entry{}, err
	}
	r := now.record(&entry, document)
	if err := s.commit(ctx, now, r); err != nil {
		return Entry{}, err
	}
	return entry, nil
}

// record returns the record of the entry that follows, whose time it sets.
func (p presence) record(entry *Entry, document []byte) etcdRecord {
	entry.At = time.Now().UTC().Truncate(time.Microsecond)
	if entry.At.Before(p.entry.At) {
		entry.At = p.entry.At
	}
	return etcdRecord{Version: entry.version(), At: entry.At, By: entry.By, Why: entry.Why, Change: rand.Text(), Map: string(document)}
}

// commit makes a record the current version.
//
// After a lost connection the transaction is sent again until there is an answer. It takes effect at most once, because it
// changes what it compares; if it did not, the key of the version shows which change did.
func (s *etcd) commit(ctx context.Context, now presence, r etcdRecord) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	unknown := false // a change was sent and not answered
	pause := backoff{}
	for {
		response, err := s.commitOnce(ctx, now, r.Version, text)
		switch {
		case err == nil && response.Succeeded:
			return nil
		case err == nil:
			return s.lost(response, now.entry.version(), r)
		case unanswered(err):
			unknown = true
		case errors.Is(err, rpctypes.ErrRequestTooLarge):
			return tooLarge(err, r)
		case !unknown:
			return refusedByEtcd(err)
		}
		if !pause.wait(ctx) || s.end.Err() != nil {
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
	}
}

// tooLarge says what of a record is too large for etcd.
func tooLarge(err error, r etcdRecord) error {
	return refusal(fmt.Errorf("%w: the map, of %d bytes, is in it twice; expected that to be less than etcd's --max-request-bytes, 1.5 MiB by default", err, len(r.Map)))
}

// refusedByEtcd returns an error as a refusal if it is one: for what it is asked, or for a right that the user lacks.
func refusedByEtcd(err error) error {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied:
		return refusal(err)
	}
	return err
}

func (s *etcd) commitOnce(ctx context.Context, now presence, version int, text string) (*clientv3.TxnResponse, error) {
	// A part of the limit, so that another server is tried if one hangs.
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit/attempts)
	defer cancel()
	return send(ctx, s, "change the map", func(ctx context.Context, c *clientv3.Client) (*clientv3.TxnResponse, error) {
		return c.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.mapKey()), "=", now.mod)).
			Then(clientv3.OpPut(s.mapKey(), text), clientv3.OpPut(s.historyKey(version), text)).
			Else(clientv3.OpGet(s.mapKey()), clientv3.OpGet(s.historyKey(version))).
			Commit()
	})
}

// lost returns nil if the change that the transaction lost to is its own.
func (s *etcd) lost(response *clientv3.TxnResponse, wanted int, r etcdRecord) error {
	present, same := response.Responses[0].GetResponseRange().Kvs, response.Responses[1].GetResponseRange().Kvs
	if len(same) > 0 {
		if winner, err := s.decodeRecord(same[0]); err == nil && winner.Change == r.Change {
			return nil
		}
	}
	conflict := &ConflictError{Wanted: wanted}
	if len(present) > 0 {
		winner, err := s.decodeRecord(present[0])
		if err != nil {
			return err
		}
		conflict.Found = winner.Version
	}
	return conflict
}

// unanswered reports whether the outcome of a request is unknown after an error: after all but refusals of etcd, and errors of
// requests that were not sent.
func unanswered(err error) bool {
	var unsent *unsentError
	if errors.As(err, &unsent) {
		return false
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted, codes.FailedPrecondition:
		return false
	}
	return true
}

// codeOf returns the code of an error of etcd.
func codeOf(err error) codes.Code {
	var known interface{ Code() codes.Code } // to etcd's client
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}
