package mapstore

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Checker is a [Store] that can say beforehand whether it would take a change. Those of this package do.
type Checker interface {
	// Check returns the error that [Store.Swap] would return for next, from whatever version is the current one, as far as that can be
	// known without a change.
	Check(ctx context.Context, next Change) error
}

// Check implements [Checker]. It also finds out whether the files may be written.
func (s *fileStore) Check(ctx context.Context, next Change) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	h, err := s.lockHistory(ctx)
	if err != nil {
		return err
	}
	defer h.unlock()
	_, now, _, err := s.present()
	if err != nil {
		return err
	}
	if _, _, err := s.docs.check(now, next); err != nil {
		return err
	}
	return errors.Join(writable(h.dir), writable(filepath.Dir(h.file)))
}

// writable returns an error if no file can be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".kiloshard-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Check implements [Checker]. It also makes the change, in a transaction that is rolled back: the role may be one that only reads.
func (s *postgresStore) Check(ctx context.Context, next Change) error {
	now, err := s.Load(ctx)
	if err != nil && !errors.Is(err, ErrNoMap) {
		return err
	}
	made, text, err := s.docs.check(now, next)
	if err != nil || now.Map == nil { // the first change makes the table
		return err
	}
	c := change{store: s, attempt: rand.Text(), from: now.version(), next: next}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	if err := s.prepare(ctx); err != nil {
		return s.failed(err)
	}
	if _, err = c.insert(ctx, made.version(), text, "rollback"); errors.Is(err, pgx.ErrNoRows) || isLost(err) { // another change has come
		err = nil
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}

// never is a revision that no key of etcd has.
const never = -1

// Check implements [Checker]. It also sends the change under a condition that does not hold: etcd checks rights, size and space first.
func (s *etcd) Check(ctx context.Context, next Change) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	now, err := s.present(ctx, s.documents.keepUnset())
	if err != nil && !errors.Is(err, ErrNoMap) {
		return err
	}
	entry, document, err := s.documents.check(now.entry, next)
	if err != nil {
		return err
	}
	r := now.record(&entry, document)
	text, err := r.encode()
	if err != nil {
		return err
	}
	now.mod = never
	_, err = s.commitOnce(ctx, now, r.Version, text)
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return tooLarge(err, r)
	}
	return refusedByEtcd(err)
}
