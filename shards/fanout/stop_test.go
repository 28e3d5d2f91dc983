package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

var errRefused = errors.New("connection refused")

func TestHostThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	b := setup(t, 9, 3)
	b.cfg.Open = func(_ context.Context, h shards.Host) (*session, error) {
		if h.Name != "pg-0" {
			return nil, errRefused
		}
		return &session{host: h.Name}, nil
	}
	done, err := b.run(t, t.Context())
	p := partial(t, err)
	if done.Len() != 0 || len(p.Failed) != 0 || p.NotAttempted.Len() != 9 || len(b.batches) != 0 || len(b.begun) != 0 {
		t.Errorf("got %s, %v, %d batches, expected nothing to be begun", done, err, len(b.batches))
	}
	want := "0 of 9 shards done, 0 failed, 9 not attempted: host pg-1: connection refused; host pg-2: connection refused"
	var host *shards.HostError
	if err.Error() != want || !errors.Is(err, errRefused) || !errors.As(err, &host) {
		t.Errorf("got %v, expected %s", err, want)
	}
}

// Reachable has the hosts that open work without the others.
func TestReachable(t *testing.T) {
	t.Parallel()
	b := setup(t, 9, 3)
	b.cfg.Reachable = true
	b.cfg.Open = func(_ context.Context, h shards.Host) (*session, error) {
		if h.Name == "pg-1" {
			return nil, errRefused
		}
		return &session{host: h.Name}, nil
	}
	done, err := b.run(t, t.Context())
	p := partial(t, err)
	if done.String() != "0,2-3,5-6,8" || p.NotAttempted.String() != "1,4,7" || !strings.HasSuffix(err.Error(), ": host pg-1: connection refused") {
		t.Errorf("got %s, %v", done, err)
	}
}

// A shard that Do gives up at an interrupt has not failed.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	b.cfg.PerHost = 1
	b.cfg.Do = func(ctx context.Context, _ *session, _ []shards.Number) []error {
		interrupt()
		<-fanout.Interrupted(ctx)
		return []error{fmt.Errorf("%w, and not tried again", fanout.ErrInterrupted)}
	}
	_, err := b.run(t, ctx)
	p := partial(t, err)
	if len(p.Failed) != 0 || p.Interrupted.String() != "0" || p.NotAttempted.String() != "0-3" {
		t.Errorf("got %+v", p)
	}
	if want := "0 of 4 shards done, 0 failed, 1 interrupted, 3 not attempted: context canceled"; err.Error() != want {
		t.Errorf("got %v, expected %s", err, want)
	}
}

func TestInterruptWhileOpening(t *testing.T) {
	t.Parallel()
	b := setup(t, 9, 3)
	ctx, cancel := context.WithCancel(t.Context())
	b.cfg.Open = func(ctx context.Context, h shards.Host) (*session, error) {
		if h.Name == "pg-0" {
			return &session{host: h.Name}, nil
		}
		if h.Name == "pg-1" {
			cancel()
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := b.run(t, ctx)
	p := partial(t, err)
	if p.NotAttempted.Len() != 9 || !errors.Is(err, context.Canceled) || len(p.Causes) != 1 || len(b.batches) != 0 {
		t.Errorf("got %v", err)
	}
}

func TestInterruptBeforeItBegins(t *testing.T) {
	t.Parallel()
	b := setup(t, 9, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.run(t, ctx)
	if p := partial(t, err); p.NotAttempted.Len() != 9 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Both workers are in a batch when the interrupt comes. They finish it with a context that lives.
func TestInterruptFinishesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t, 30, 1)
	b.cfg.PerHost, b.cfg.Batch = 2, 3
	signal := errors.New("signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	var under atomic.Int32
	b.cfg.Do = func(working context.Context, _ *session, batch []shards.Number) []error {
		if under.Add(1) == 2 {
			cancel(signal)
		}
		<-ctx.Done()
		errs := make([]error, len(batch))
		for i := range errs {
			errs[i] = working.Err()
		}
		return errs
	}
	done, err := b.run(t, ctx)
	p := partial(t, err)
	if done.String() != "0-5" || len(p.Failed) != 0 || p.NotAttempted.String() != "6-29" {
		t.Errorf("got %v", err)
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, signal) {
		t.Errorf("got %v, expected context.Canceled and its cause", err)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, 30, 1)
	b.cfg.PerHost = 1
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	b.cfg.Do = func(_ context.Context, _ *session, batch []shards.Number) []error {
		<-ctx.Done()
		return make([]error, len(batch))
	}
	_, err := b.run(t, ctx)
	if p := partial(t, err); p.Done.Len() > 1 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// An interrupt that comes when the last batch is under way takes nothing from the result.
func TestInterruptOfTheLastBatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	b.cfg.Do = func(context.Context, *session, []shards.Number) []error {
		cancel()
		return []error{nil}
	}
	if done, err := b.run(t, ctx); err != nil || done.Len() != 1 {
		t.Errorf("got %s, %v, expected all done", done, err)
	}
}

// A batch that goes on past the grace fails, since its context ends.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, 1)
	b.cfg.PerHost = 1
	b.cfg.Grace = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	b.cfg.Do = func(working context.Context, _ *session, _ []shards.Number) []error {
		cancel()
		<-working.Done()
		return []error{working.Err()}
	}
	done, err := b.run(t, ctx)
	p := partial(t, err)
	if done.Len() != 0 || len(p.Failed) != 1 || p.Failed[0].Shard != 0 || p.NotAttempted.String() != "1-3" {
		t.Errorf("got %v", err)
	}
}

func TestDeadSessionIsReopened(t *testing.T) {
	t.Parallel()
	b := setup(t, 10, 1)
	b.cfg.PerHost, b.cfg.Batch = 1, 2
	broken := errors.New("connection lost")
	b.cfg.Do = func(_ context.Context, s *session, batch []shards.Number) []error {
		if batch[0] == 4 {
			s.dead = true
			return []error{nil, broken}
		}
		return []error{nil, nil}
	}
	done, err := b.run(t, t.Context())
	p := partial(t, err)
	if done.String() != "0-4,6-9" || len(p.Failed) != 1 || p.Failed[0].Shard != 5 || p.NotAttempted.Len() != 0 || len(p.Causes) != 0 {
		t.Errorf("got %v", err)
	}
	if len(b.opened) != 2 {
		t.Errorf("opened %d sessions, expected the first and one in its place", len(b.opened))
	}
}

// A session that dies with the last batch is not opened again for nothing.
func TestDeadSessionAfterTheLastBatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1)
	b.cfg.Do = func(_ context.Context, s *session, _ []shards.Number) []error {
		s.dead = true
		return []error{nil}
	}
	if done, err := b.run(t, t.Context()); err != nil || done.Len() != 1 || len(b.opened) != 1 {
		t.Errorf("got %s, %v after %d sessions", done, err, len(b.opened))
	}
}

// Both workers of a host lose their sessions, and both find that there is no other.
func TestLostHost(t *testing.T) {
	t.Parallel()
	b := setup(t, 20, 2)
	b.cfg.PerHost = 2
	broken := errors.New("connection lost")
	var working, reopening sync.WaitGroup
	working.Add(2)
	reopening.Add(2)
	var opened atomic.Int32
	b.cfg.Open = func(_ context.Context, h shards.Host) (*session, error) {
		if h.Name == "pg-0" && opened.Add(1) > 2 {
			reopening.Done()
			reopening.Wait()
			return nil, errRefused
		}
		return &session{host: h.Name}, nil
	}
	b.cfg.Do = func(_ context.Context, s *session, _ []shards.Number) []error {
		if s.host == "pg-0" {
			working.Done()
			working.Wait()
			s.dead = true
			return []error{broken}
		}
		return []error{nil}
	}
	done, err := b.run(t, t.Context())
	p := partial(t, err)
	if done.String() != b.cfg.Map.Config().Placement[1].Shards.String() {
		t.Errorf("done: got %s, expected all of the other host", done)
	}
	if len(p.Failed) != 2 || p.NotAttempted.Len() != 8 || !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
	var host *shards.HostError
	if len(p.Causes) != 1 || !errors.As(p.Causes[0], &host) || host.Host != "pg-0" {
		t.Errorf("got causes %v, expected the lost host once", p.Causes)
	}
}

// A host that has room for one session only is worked on in that one.
func TestNoRoomForMoreSessions(t *testing.T) {
	t.Parallel()
	b := setup(t, 10, 1)
	b.cfg.PerHost = 4
	var sessions atomic.Int32
	b.cfg.Open = func(_ context.Context, h shards.Host) (*session, error) {
		if sessions.Add(1) > 1 {
			return nil, errors.New("too many connections")
		}
		return &session{host: h.Name}, nil
	}
	if done, err := b.run(t, t.Context()); err != nil || done.Len() != 10 || b.mostBusy["pg-0"] != 1 {
		t.Errorf("got %s, %v", done, err)
	}
}

// An abort ends what is under way at once, however long the grace is, and says so to what has begun before.
func TestAbort(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, 1)
	b.cfg.PerHost = 1
	b.cfg.Grace = time.Hour
	ctx, interrupt := context.WithCancel(t.Context())
	aborted, abort := context.WithCancel(t.Context())
	b.cfg.Do = func(working context.Context, _ *session, _ []shards.Number) []error {
		interrupt()
		<-fanout.Interrupted(working)
		if working.Err() != nil {
			t.Error("the batch is cancelled by the interrupt, expected that it may be finished")
		}
		abort()
		<-working.Done()
		return []error{working.Err()}
	}
	_, err := b.run(t, fanout.WithAbort(ctx, aborted))
	if p := partial(t, err); len(p.Failed) != 1 || p.NotAttempted.Len() != 3 {
		t.Errorf("got %v, expected one failed and three not attempted", err)
	}
}
