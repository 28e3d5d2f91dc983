package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
)

// soon keeps pauses short where they do not matter.
var soon = router.Retry{Backoff: time.Millisecond}

// An update meets a row that another transaction has changed since.
func TestRetryAfterSerializationFailure(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	runs := 0
	err := soon.Tx(ctx, b.shard(t, 9), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		runs++
		var owner int
		if err := tx.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner); err != nil {
			return err
		}
		if runs == 1 {
			b.run(ctx, t, `update shard_00009.photos set owner = owner + 10`)
		}
		_, err := tx.Exec(ctx, `update photos set owner = $1 where id = $2`, owner+1, 1)
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
	wantOwner(ctx, t, b.shard(t, 9), 20)
	b.isFree(ctx, t)
}

// Two transactions that have read the same each write half of it. The one that commits last is refused only then.
func TestRetryAfterCommitFails(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 2})
	s := b.shard(t, 9)
	serializable := pgx.TxOptions{IsoLevel: pgx.Serializable}
	touch := func(tx pgx.Tx, id int) error {
		_, err := tx.Exec(ctx, `update photos set owner = (select sum(owner) from photos) where id = $1`, id)
		return err
	}
	if _, err := s.Exec(ctx, `insert into photos values ($1, $2)`, 2, 9); err != nil {
		t.Fatal(err)
	}
	runs, finished := 0, 0
	err := soon.Tx(ctx, s, serializable, func(tx pgx.Tx) error {
		runs++
		if err := touch(tx, 1); err != nil {
			return err
		}
		if runs == 1 {
			if err := s.Tx(ctx, serializable, func(other pgx.Tx) error { return touch(other, 2) }); err != nil {
				t.Errorf("the other transaction: %v", err)
			}
		}
		finished++
		return nil
	})
	if err != nil || runs != 2 || finished != 2 {
		t.Errorf("%d runs, %d of them up to the COMMIT, %v", runs, finished, err)
	}
	wantOwner(ctx, t, s, 27) // row 2 was 18 by then
	b.isFree(ctx, t)
}

func TestRetryAfterDeadlock(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 2})
	s := b.shard(t, 9)
	if _, err := s.Exec(ctx, `insert into photos values ($1, $2)`, 2, 0); err != nil {
		t.Fatal(err)
	}
	wait := func(event chan struct{}) error {
		select {
		case <-event:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var runs [2]int
	locked := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	over := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	var group sync.WaitGroup
	for me := range 2 {
		group.Go(func() {
			defer close(over[me])
			err := soon.Tx(ctx, s, pgx.TxOptions{}, func(tx pgx.Tx) error {
				runs[me]++
				if runs[me] > 1 { // the loser lets the winner finish
					if err := wait(over[1-me]); err != nil {
						return err
					}
				}
				if _, err := tx.Exec(ctx, `update photos set owner = owner + 1 where id = $1`, 1+me); err != nil {
					return err
				}
				if runs[me] == 1 {
					close(locked[me])
					if err := wait(locked[1-me]); err != nil {
						return err
					}
				}
				_, err := tx.Exec(ctx, `update photos set owner = owner + 1 where id = $1`, 2-me)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if runs[0]+runs[1] != 3 {
		t.Errorf("%v runs, want 3: one of the two is refused once", runs)
	}
	wantOwner(ctx, t, s, 11)
	b.isFree(ctx, t)
}

const raise40001 = `do $$ begin raise serialization_failure; end $$`

func TestRetryGivesUp(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	tests := []struct {
		attempts, want int
		text           string
	}{
		{0, 5, "after 5 attempts: shard 9 (shard_00009 on pg-a): "},
		{1, 1, "after 1 attempt: shard 9 (shard_00009 on pg-a): "},
		{3, 3, "after 3 attempts: shard 9 (shard_00009 on pg-a): "},
	}
	for _, test := range tests {
		runs := 0
		retry := router.Retry{Attempts: test.attempts, Backoff: time.Microsecond, MaxBackoff: time.Nanosecond}
		err := retry.Tx(ctx, b.shard(t, 9), pgx.TxOptions{}, func(tx pgx.Tx) error {
			runs++
			_, err := tx.Exec(ctx, raise40001)
			return err
		})
		var retryErr *router.RetryError
		if !errors.As(err, &retryErr) || retryErr.Attempts != test.want || runs != test.want || !strings.HasPrefix(err.Error(), test.text) {
			t.Errorf("%d attempts asked for: %d runs, %v", test.attempts, runs, err)
		}
		if !router.SafeToRetry(err) {
			t.Errorf("nothing has happened, yet it is not safe to try again: %v", err)
		}
	}
	b.isFree(ctx, t)
}

// The end of ctx ends a pause too, and the error says what there was to wait for.
func TestRetryEndsWithContext(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	ending, end := context.WithCancel(ctx)
	failed := make(chan struct{})
	go func() {
		<-failed
		end()
	}()
	runs := 0
	err := router.Retry{Backoff: time.Hour, MaxBackoff: time.Hour}.Tx(ending, b.shard(t, 9), pgx.TxOptions{}, func(tx pgx.Tx) error {
		runs++
		defer close(failed)
		_, err := tx.Exec(ctx, raise40001)
		return err
	})
	var retryErr *router.RetryError
	if !errors.As(err, &retryErr) || retryErr.Attempts != 1 || runs != 1 || !errors.Is(err, context.Canceled) || code(err) != "40001" {
		t.Errorf("%d runs, %v", runs, err)
	}
	b.isFree(ctx, t)
}

// What has nothing to do with other transactions fails at once, and as it does without Retry.
func TestRetryNothingElse(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	ended, end := context.WithCancel(ctx)
	end()
	tests := []struct {
		name string
		fn   func(tx pgx.Tx) error
		want func(err error) bool
	}{
		{"a duplicate", func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into photos values ($1)`, 1)
			return err
		}, func(err error) bool { return code(err) == "23505" }},
		{"an error of fn", func(pgx.Tx) error { return io.ErrShortWrite }, func(err error) bool { return same(err, io.ErrShortWrite) }},
		{"a failure that fn keeps to itself", func(tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, raise40001)
			return nil
		}, func(err error) bool { return same(err, pgx.ErrTxCommitRollback) }},
		{"a session that is ended", func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
			return err
		}, func(err error) bool { return code(err) == "57P01" }},
		{"a context that has ended", func(tx pgx.Tx) error {
			_, err := tx.Exec(ended, `select 1`)
			return err
		}, func(err error) bool { return errors.Is(err, context.Canceled) && pgconn.SafeToRetry(err) }},
		{"an unknown outcome", func(pgx.Tx) error {
			return fmt.Errorf("%w: %w", router.ErrOutcomeUnknown, &pgconn.PgError{Code: "40001"})
		}, func(err error) bool { return errors.Is(err, router.ErrOutcomeUnknown) }},
	}
	for _, test := range tests {
		runs := 0
		err := soon.Tx(ctx, b.shard(t, 9), pgx.TxOptions{}, func(tx pgx.Tx) error {
			runs++
			return test.fn(tx)
		})
		if runs != 1 || !test.want(err) || router.SafeToRetry(err) || errors.As(err, new(*router.RetryError)) {
			t.Errorf("%s: %d runs, %v", test.name, runs, err)
		}
	}
	wantOwner(ctx, t, b.shard(t, 9), 9)
	b.isFree(ctx, t)
}

// A second attempt that fails in another way says that it was the second.
func TestRetryFailsOtherwise(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	runs := 0
	err := soon.Tx(ctx, b.shard(t, 9), pgx.TxOptions{}, func(tx pgx.Tx) error {
		if runs++; runs > 1 {
			return io.ErrShortWrite
		}
		_, err := tx.Exec(ctx, raise40001)
		return err
	})
	if err == nil || err.Error() != "after 2 attempts: short write" || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func code(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func wantOwner(ctx context.Context, t *testing.T, s router.Shard, want int) {
	t.Helper()
	var owner int
	if err := s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner); err != nil || owner != want {
		t.Errorf("owner %d, want %d; %v", owner, want, err)
	}
}
