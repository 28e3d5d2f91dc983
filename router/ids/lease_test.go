package ids_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

// source is a generator in memory of 1, 2, 3 and so on.
type source struct {
	mu    sync.Mutex
	last  shards.ID
	asked []int
	delay time.Duration
	deaf  bool // does not hear that its context ended
	err   error
}

func (s *source) NextIDs(ctx context.Context, n int) ([]shards.ID, error) {
	if s.deaf {
		time.Sleep(s.delay)
	} else if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.asked = append(s.asked, n)
	made := make([]shards.ID, n)
	for i := range made {
		s.last++
		made[i] = s.last
	}
	return made, nil
}

func (s *source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// TestLeaseHandsOutEachIDOnce draws from many goroutines in every way: unique, and rising for each of them.
func TestLeaseHandsOutEachIDOnce(t *testing.T) {
	t.Parallel()
	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: &source{}, Block: 16, MaxBlock: 512})
	defer lease.Close()
	var all collection[shards.ID]
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var mine []shards.ID
			for k := range 3000 {
				made, err := lease.NextIDs(t.Context(), k%5)
				if err != nil {
					t.Error(err)
					return
				}
				id, err := lease.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mine = append(append(mine, made...), id)
			}
			checkRising(t, mine)
			all.add(mine...)
		})
	}
	wg.Wait()
	all.checkUnique(t, 16*3000)
}

// TestLeaseAge lets time pass in a lease, any time: no ID is ever older than its age, and none comes twice.
func TestLeaseAge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			age := time.Duration(rapid.IntRange(10, 1000).Draw(rt, "age, ms")) * time.Millisecond
			clock := &clock{}
			lease := ids.NewLease(ids.LeaseConfig[time.Time]{
				Generator: clock, Age: age,
				Block: rapid.IntRange(1, 50).Draw(rt, "block"), MaxBlock: rapid.IntRange(1, 500).Draw(rt, "largest block"),
			})
			defer lease.Close()
			for range rapid.IntRange(1, 100).Draw(rt, "draws") {
				clock.delay.Store(int64(rapid.SampledFrom([]int{0, 1, 5}).Draw(rt, "delay, ms")) * int64(time.Millisecond))
				time.Sleep(time.Duration(rapid.IntRange(0, 300).Draw(rt, "pause, ms")) * time.Millisecond)
				n := rapid.IntRange(0, 60).Draw(rt, "n")
				made, err := lease.NextIDs(context.Background(), n)
				if n == 1 {
					made[0], err = lease.Next(context.Background())
				}
				if err != nil || len(made) != n {
					rt.Fatalf("got %d IDs, %v; expected %d", len(made), err, n)
				}
				for _, asked := range made {
					if old := time.Since(asked); old > age {
						rt.Fatalf("an ID is %s old, expected at most %s", old, age)
					}
				}
			}
		})
	})
}

// clock is a generator of moments: when each was asked for.
type clock struct{ delay atomic.Int64 }

func (c *clock) NextIDs(_ context.Context, n int) ([]time.Time, error) {
	now := time.Now()
	time.Sleep(time.Duration(c.delay.Load()))
	return slices.Repeat([]time.Time{now}, n), nil
}

// TestLeaseBlocksFollowDemand draws much, then little.
func TestLeaseBlocksFollowDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: s, Block: 10, MaxBlock: 80, Age: time.Second})
		defer lease.Close()
		draw := func(n int, pause time.Duration) {
			t.Helper()
			for range n {
				if _, err := lease.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // a block on its way is there
				time.Sleep(pause)
			}
		}
		draw(1000, 0)
		if most := slices.Max(s.asked); most != 80 {
			t.Errorf("the largest block under load has %d IDs, expected 80", most)
		}
		busy := len(s.asked)
		draw(20, 2*time.Second)
		if last := s.asked[len(s.asked)-1]; last != 10 {
			t.Errorf("the last block has %d IDs, expected 10 again", last)
		}
		if len(s.asked) == busy {
			t.Error("no block was asked for after the old ones had expired")
		}
		quiet := len(s.asked)
		time.Sleep(time.Hour)
		if len(s.asked) != quiet {
			t.Errorf("%d blocks were asked for while nobody drew", len(s.asked)-quiet)
		}
	})
}

func TestLeaseErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := &source{err: broken}
		lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: s, Age: time.Second, Timeout: 10 * time.Second})
		defer lease.Close()
		if _, err := lease.Next(t.Context()); !errors.Is(err, broken) {
			t.Errorf("got %v, expected %v", err, broken)
		}
		s.fail(nil)
		s.delay = 5*time.Second + time.Millisecond // the second one comes after the timeout, whatever the source thinks
		s.deaf = true
		if _, err := lease.Next(t.Context()); !errors.Is(err, ids.ErrTooSlow) {
			t.Errorf("got %v, expected %v", err, ids.ErrTooSlow)
		}
		s.deaf, s.delay = false, 100*time.Millisecond
		impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := lease.Next(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, expected %v", err, context.DeadlineExceeded)
		}
		if _, err := lease.Next(t.Context()); err != nil { // the block comes all the same
			t.Errorf("after a caller left: %v", err)
		}
		s.delay = time.Hour
		if _, err := lease.NextIDs(t.Context(), 5000); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, expected the timeout", err)
		}
		waiting := make(chan error)
		go func() {
			_, err := lease.NextIDs(t.Context(), 5000)
			waiting <- err
		}()
		synctest.Wait()
		lease.Close()
		if err := <-waiting; !errors.Is(err, ids.ErrClosed) {
			t.Errorf("a caller that waited got %v, expected %v", err, ids.ErrClosed)
		}
		if _, err := lease.NextIDs(t.Context(), 1); !errors.Is(err, ids.ErrClosed) {
			t.Errorf("got %v, expected %v", err, ids.ErrClosed)
		}
	})
}

// BenchmarkLeaseNext hands out IDs that are there: go test -bench Lease -cpu 1 ./router/ids
func BenchmarkLeaseNext(b *testing.B) {
	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: &source{}, Block: 1 << 16, MaxBlock: 1 << 20, Age: time.Hour})
	defer lease.Close()
	for b.Loop() {
		if _, err := lease.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLeaseNextIDs100(b *testing.B) {
	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: &source{}, Block: 1 << 16, MaxBlock: 1 << 20, Age: time.Hour})
	defer lease.Close()
	for b.Loop() {
		if _, err := lease.NextIDs(b.Context(), 100); err != nil {
			b.Fatal(err)
		}
	}
}
