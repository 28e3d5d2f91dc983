package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/script"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// sharedUp returns the files up to the target that run once a host.
func (r *run) sharedUp() []files.File {
	if r.way != files.Up {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.directory.Shared), func(f files.File) bool { return f.Number > r.target })
}

// share runs the files that run once a host, in order, on each host that has not run them. These are the hosts of the run's
// shards, and with all shards also the hosts that have none yet. It returns a [shards.HostError] for each host that fails.
func (r *run) share(ctx context.Context) []error {
	pending := r.sharedUp()
	if len(pending) == 0 {
		return nil
	}
	hosts := make([]shards.Host, 0, len(r.cfg.Map.Hosts()))
	for _, w := range fanout.Plan(r.cfg.Map, r.cfg.Shards) {
		hosts = append(hosts, w.Host)
	}
	for _, host := range r.cfg.Map.Hosts() {
		if r.cfg.Shards.Len() == r.cfg.Map.Len() && len(r.cfg.Map.NumbersOn(host.Name)) == 0 && !host.Closed {
			hosts = append(hosts, host)
		}
	}
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() {
			if err := r.shareOn(ctx, host, pending); err != nil {
				errs[i] = &shards.HostError{Host: host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// shareAlone is [run.share] when no shard has a file to run.
func (r *run) shareAlone(ctx context.Context) error {
	if causes := r.share(ctx); len(causes) > 0 {
		return &shards.PartialError{Causes: interruptedOr(ctx, causes)}
	}
	return nil
}

// shareOn runs the files that a host has not run.
func (r *run) shareOn(ctx context.Context, host shards.Host, pending []files.File) error {
	s, err := r.sessions.Take(ctx, host)
	if err != nil {
		return err
	}
	defer r.sessions.Give(s)
	have, err := haveShared(ctx, s)
	if err != nil {
		return err
	}
	pending = slices.DeleteFunc(slices.Clone(pending), func(f files.File) bool { return slices.Contains(have, f.Number) })
	if len(pending) == 0 {
		return nil
	}
	if err := ledger.Keep(ctx, s, r.cfg.Map.Schemas(r.cfg.Map.NumbersOn(host.Name))); err != nil {
		return err
	}
	for _, f := range pending {
		if !s.KnowsStrings() {
			return &fileerror.Error{File: f.Name, Err: files.ErrEscapes}
		}
		err := r.shareFile(ctx, s, f)
		for attempt := 1; session.Collided(err) && !errors.Is(err, ErrTransactionEnded) && attempt <= r.cfg.Retries && !s.Conn.IsClosed(); attempt++ {
			r.triedAgain.Add(1)
			err = r.shareFile(ctx, s, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// haveShared returns the versions of the files that the host has run once a host.
func haveShared(ctx context.Context, s *session.Session) ([]int32, error) {
	there, err := s.Value(ctx, `select to_regprocedure('kiloshard.need_shared(int)') is not null and to_regclass('kiloshard.ledger') is not null`)
	if err != nil || there != "t" {
		return nil, err
	}
	text, err := s.Value(ctx, `select coalesce(json_agg(version), '[]') from kiloshard.ledger where direction = 'shared' and current`)
	if err != nil {
		return nil, connect.NameHolders(ctx, s.Conn, err)
	}
	var have []int32
	if err := json.Unmarshal([]byte(text), &have); err != nil {
		return nil, fmt.Errorf("its ledger: %w", err)
	}
	return have, nil
}

// shareFile runs a file on a host, in one transaction, unless another run was first.
func (r *run) shareFile(ctx context.Context, s *session.Session, f files.File) error {
	text := script.OnHost(r.shape(0, shardVersion{}), r.cfg.Map.SharedSchemas(), f)
	out := text.Send(ctx, s)
	done, ended := out.Applied()
	if out.Err != nil || ended || s.Conn.TxStatus() != 'I' {
		s.Recover(ctx)
	}
	if done == 1 || out.Moved() && !ended {
		if done == 1 {
			r.shares.add(f.Name, s.Host.Name)
		}
		return nil
	}
	err := text.Explain(out)
	if left := (*script.LeftError)(nil); errors.As(err, &left) {
		left.Shared = r.cfg.Map.SharedSchemas()
	}
	return err
}
