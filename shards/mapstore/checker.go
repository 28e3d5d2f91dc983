package mapstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// Check implements [Checker].
func (s *postgresStore) Check(ctx context.Context, next Change) error {
	return checkNext(ctx, s, s.docs, next)
}

// Check implements [Checker].
func (s *etcd) Check(ctx context.Context, next Change) error {
	return checkNext(ctx, s, s.documents, next)
}

func checkNext(ctx context.Context, s Store, docs documents, next Change) error {
	now, err := s.Load(ctx)
	if err == nil || errors.Is(err, ErrNoMap) {
		_, _, err = docs.check(now, next)
	}
	return err
}
