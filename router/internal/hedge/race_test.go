package hedge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/hedge"
)

var errDown = errors.New("the server is down")

// bundle is a race of servers with numbers from 0. The test controls their answers.
type bundle struct {
	race     hedge.Race[int, string]
	mu       sync.Mutex
	asked    []int
	dropped  []string
	running  sync.WaitGroup
	budget   int
	refunded int
}

// setup makes a race of the given number of servers. answer returns their answers.
func setup(servers int, answer func(ctx context.Context, at int) (string, error)) *bundle {
	b := &bundle{budget: 1}
	next := 0
	b.race = hedge.Race[int, string]{
		Next: func() (int, error) {
			if next == servers {
				return 0, errDown
			}
			next++
			return next - 1, nil
		},
		Read: func(ctx context.Context, at int) (string, error) {
			b.mu.Lock()
			b.asked = append(b.asked, at)
			b.mu.Unlock()
			return answer(ctx, at)
		},
		GoesOn: func(_ int, err error) bool { return errors.Is(err, errDown) },
		Drop: func(answer string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dropped = append(b.dropped, answer)
		},
		Go:     func(fn func()) bool { b.running.Go(fn); return true },
		Delay:  time.Hour,
		Spend:  func() bool { b.budget--; return b.budget >= 0 },
		Refund: func() { b.refunded++ },
	}
	return b
}

// run runs the race and waits until all its goroutines have ended.
func (b *bundle) run(t *testing.T, ctx context.Context) (hedge.Result[int, string], error) {
	t.Helper()
	result, err := b.race.Run(ctx)
	b.running.Wait()
	if result.Cancel != nil {
		result.Cancel()
	}
	return result, err
}

func reads(_ context.Context, at int) (string, error) { return fmt.Sprint("of ", at), nil }

// untilEnd answers at once on server 1, and returns an error on others when the context ends.
func untilEnd(ctx context.Context, at int) (string, error) {
	if at == 1 {
		return "of 1", nil
	}
	<-ctx.Done()
	return "", ctx.Err()
}

func TestFirstAnswers(t *testing.T) {
	t.Parallel()
	b := setup(2, reads)
	got, err := b.run(t, t.Context())
	if err != nil || got.Answer != "of 0" || got.Second || got.Won || !slices.Equal(b.asked, []int{0}) {
		t.Errorf("got %+v, %v; asked %v", got, err, b.asked)
	}
}

// The second server gets the read when the first is late. The read on the first is canceled after loserLimit.
func TestSecondWins(t *testing.T) {
	t.Parallel()
	b := setup(2, untilEnd)
	b.race.Delay = 0
	got, err := b.run(t, t.Context())
	if err != nil || got.Answer != "of 1" || got.First != 0 || !got.Second || !got.Won || len(b.dropped) > 0 {
		t.Errorf("got %+v, %v; dropped %v", got, err, b.dropped)
	}
}

// An answer that comes after another one is dropped.
func TestLateAnswerIsDropped(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	b := setup(2, func(ctx context.Context, at int) (string, error) {
		if at == 0 {
			<-answered
		}
		return reads(ctx, at)
	})
	b.race.Delay = 0
	got, err := b.race.Run(t.Context())
	close(answered)
	b.running.Wait()
	if err != nil || got.Answer != "of 1" || !slices.Equal(b.dropped, []string{"of 0"}) {
		t.Errorf("got %+v, %v; dropped %v", got, err, b.dropped)
	}
	got.Cancel()
}

func TestNoBudget(t *testing.T) {
	t.Parallel()
	spent := make(chan struct{})
	b := setup(2, func(ctx context.Context, at int) (string, error) {
		<-spent
		return reads(ctx, at)
	})
	b.race.Delay, b.race.Spend = 0, func() bool { close(spent); return false }
	if got, err := b.run(t, t.Context()); err != nil || got.Answer != "of 0" || got.Second {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The budget is refunded if there is no second server.
func TestNoSecondServer(t *testing.T) {
	t.Parallel()
	refunded := make(chan struct{})
	b := setup(1, func(ctx context.Context, at int) (string, error) {
		<-refunded
		return reads(ctx, at)
	})
	b.race.Delay, b.race.Refund = 0, func() { close(refunded) }
	if got, err := b.run(t, t.Context()); err != nil || got.Answer != "of 0" || got.Second {
		t.Errorf("got %+v, %v", got, err)
	}
}

// When a server fails, the race tries the next one if GoesOn allows it.
func TestFailures(t *testing.T) {
	t.Parallel()
	errWrong := errors.New("the statement is wrong")
	for _, test := range []struct {
		name    string
		servers int
		errs    []error
		answer  string
		err     error
	}{
		{"the next one answers", 3, []error{errDown, errDown, nil}, "of 2", nil},
		{"none is left", 2, []error{errDown, errDown}, "", hedge.ErrFailed},
		{"no other would help", 3, []error{errWrong}, "", hedge.ErrFailed},
	} {
		b := setup(test.servers, func(ctx context.Context, at int) (string, error) {
			if err := test.errs[at]; err != nil {
				return "", err
			}
			return reads(ctx, at)
		})
		got, err := b.run(t, t.Context())
		if !errors.Is(err, test.err) || got.Answer != test.answer || len(b.asked) != len(test.errs) {
			t.Errorf("%s: got %+v, %v; asked %v", test.name, got, err, b.asked)
		}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := setup(1, func(ctx context.Context, at int) (string, error) {
		cancel()
		return untilEnd(ctx, at)
	})
	if _, err := b.run(t, ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the context ended: got %v", err)
	}
	b = setup(0, reads)
	if _, err := b.run(t, t.Context()); !errors.Is(err, errDown) {
		t.Errorf("no server: got %v", err)
	}
	b = setup(1, reads)
	b.race.Go = func(func()) bool { return false }
	if _, err := b.run(t, t.Context()); !errors.Is(err, hedge.ErrClosing) {
		t.Errorf("the servers are being closed: got %v", err)
	}
}

// The servers begin to be closed when the second one is asked: the caller is told that, and not that no server has answered.
func TestClosingAtSecondServer(t *testing.T) {
	t.Parallel()
	refused := make(chan struct{})
	b := setup(2, func(context.Context, int) (string, error) {
		<-refused
		return "", errDown
	})
	first := true
	b.race.Go = func(fn func()) bool {
		if first {
			first = false
			b.running.Go(fn)
			return true
		}
		close(refused)
		return false
	}
	b.race.Delay = time.Millisecond
	if _, err := b.run(t, t.Context()); !errors.Is(err, hedge.ErrClosing) {
		t.Errorf("got %v", err)
	}
}
