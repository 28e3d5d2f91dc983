package replica

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNone means that no replica qualifies. Package router exports and documents it.
var ErrNone = errors.New("no replica qualifies")

var (
	errUnmeasured   = errors.New("it was not measured recently")
	errLongBehind   = errors.New("it is behind the oldest recorded position of the primary")
	errOtherHistory = errors.New("the position is of another cluster or timeline")
	errNotReplayed  = errors.New("it has not replayed the position")
)

// Primary is the index that stands for the primary.
const Primary = -1

// Want is what a reader requires of a replica.
type Want struct {
	MaxLag      time.Duration // how old its data may be; more than 0
	After       Position      // the replica must have replayed it
	Wait        time.Duration // how long to wait for a replica that qualifies; 0 means no wait
	ReplicaOnly bool          // do not read from the primary
}

// Tried is the set of replicas, by index, that a read has tried and does not try again. Replicas after the 64th are not
// used.
type Tried uint64

// Has reports whether replica i is in the set.
func (t Tried) Has(i int) bool { return t&(1<<i) != 0 }

// Add adds replica i.
func (t *Tried) Add(i int) { *t |= 1 << i }

// Choice is a replica to read from.
type Choice struct {
	Index  int             // of the replica, or Primary
	Life   context.Context // ends when the replica stops answering
	Server string          // the server it was chosen for, as in [Seen]; for others see [Set.Check]
}

// fits reports whether a replica meets want. With anyPosition it ignores how far the replica has replayed: a wait may be
// enough.
func (s *state) fits(now time.Time, want *Want, anyPosition bool) bool {
	if s == nil || s.why != nil || now.Sub(s.measured) > min(freshFor, want.MaxLag) || s.lag(now) > want.MaxLag {
		return false
	}
	return want.After.IsZero() || s.facts.has(want.After) && (anyPosition || s.replayed >= want.After.lsn)
}

// has reports whether a position is in the history of a server: in its cluster, and not on a later timeline.
func (f facts) has(p Position) bool { return f.system == p.system && f.timeline >= p.timeline }

// choose returns the replica with the least lag among those that fit. Replicas whose lags differ by no more than two
// measurement intervals take turns.
func (s *Set) choose(want *Want, not Tried) (choice Choice, ok bool) {
	now := time.Now()
	var least time.Duration
	var fitting Tried
	for i, r := range s.all {
		if known := r.now.Load(); i < 64 && !not.Has(i) && known.fits(now, want, false) {
			if lag := known.lag(now); fitting == 0 || lag < least {
				least = lag
			}
			fitting.Add(i)
		}
	}
	if fitting == 0 {
		return Choice{}, false
	}
	tie := least + 2*time.Duration(s.pause.Load())
	first := int(s.turn.Add(1)) % len(s.all)
	for k := range s.all {
		i := (first + k) % len(s.all)
		if i >= 64 || !fitting.Has(i) {
			continue
		}
		life := s.all[i].life.Load() // read first: a newer life must not go with an older state
		if known := s.all[i].now.Load(); known.fits(now, want, false) && known.lag(now) <= tie {
			return Choice{i, life.ctx, known.server}, true
		}
	}
	return Choice{}, false // they no longer fit
}

// Find returns a replica that fits, or Primary. It waits for up to Want.Wait if Want.After is set and a replica only has
// to replay that position, or if ReplicaOnly is set. The error is that of ctx, or [ErrNone] with a reason for each replica.
func (s *Set) Find(ctx context.Context, want *Want, not Tried) (Choice, error) {
	s.want(want.MaxLag)
	if choice, ok := s.choose(want, not); ok {
		return choice, nil
	}
	if !want.After.IsZero() || want.ReplicaOnly {
		if choice, ok := s.await(ctx, want, not); ok {
			return choice, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return Choice{}, ctx.Err()
	case want.ReplicaOnly:
		return Choice{}, s.whyNot(want)
	}
	return Choice{Index: Primary}, nil
}

// await waits until a replica fits, for up to want.Wait. It reports false if none does.
func (s *Set) await(ctx context.Context, want *Want, not Tried) (Choice, bool) {
	if want.Wait <= 0 {
		return Choice{}, false
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	timer := time.NewTimer(want.Wait)
	defer timer.Stop()
	for first := true; ; first = false {
		next := s.next()
		if choice, ok := s.choose(want, not); ok {
			return choice, true
		}
		canFit, now := false, time.Now()
		for i, r := range s.all {
			if i >= 64 || not.Has(i) {
				continue
			}
			canFit = canFit || want.ReplicaOnly || r.now.Load().fits(now, want, true)
			if first && canFit {
				r.wake()
			}
		}
		if !canFit {
			return Choice{}, false
		}
		select {
		case <-next:
		case <-timer.C:
			return Choice{}, false
		case <-ctx.Done():
			return Choice{}, false
		}
	}
}

// whyNot returns an error that says for each replica why it does not fit.
func (s *Set) whyNot(want *Want) error {
	why := []error{ErrNone}
	for _, r := range s.all {
		if err := r.now.Load().whyNot(time.Now(), want); err != nil {
			why = append(why, fmt.Errorf("%s: %w", r.Name, err))
		}
	}
	return errors.Join(why...)
}

// whyNot returns why the replica does not fit; nil if it fits.
func (s *state) whyNot(now time.Time, want *Want) error {
	switch {
	case s == nil:
		return errUnmeasured
	case s.why != nil:
		return s.why
	case s.asOf.IsZero():
		return errLongBehind
	case s.lag(now) > want.MaxLag:
		return fmt.Errorf("its data may be %v old", s.lag(now).Round(time.Millisecond))
	case now.Sub(s.measured) > min(freshFor, want.MaxLag):
		return errUnmeasured
	case !s.fits(now, want, true):
		return errOtherHistory
	case !s.fits(now, want, false):
		return errNotReplayed
	}
	return nil
}
