package replica

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNone says that no replica qualifies. Package router exports and documents it.
var ErrNone = errors.New("no replica qualifies")

var (
	errUnmeasured = errors.New("it was not measured recently")
	errLongBehind = errors.New("it is further behind than the history of the primary's log goes")
	errOtherPlace = errors.New("the position is of another cluster or timeline")
	errNotThere   = errors.New("it has not replayed the position")
)

// Primary is the index that stands for the primary.
const Primary = -1

// Want is what a reader requires of a replica.
type Want struct {
	MaxLag      time.Duration // how old its data may be; more than 0
	After       Position      // it must have replayed
	Wait        time.Duration // how long to wait for a replica that qualifies; 0 is not to wait
	ReplicaOnly bool          // never the primary
}

// Tried is a set of replicas, by index, that a read is not sent to again. Replicas past the 64th are not used.
type Tried uint64

// Has reports whether replica i is in the set.
func (t Tried) Has(i int) bool { return t&(1<<i) != 0 }

// Add adds replica i.
func (t *Tried) Add(i int) { *t |= 1 << i }

// Choice is a replica to read from.
type Choice struct {
	Index  int             // Primary, or which replica
	Life   context.Context // ends when the replica stops answering
	Server string          // the server it was chosen for, as in [Seen]; for others see [Set.Check]
}

// fits reports whether a replica meets want. anyPlace ignores how far it has replayed, which waiting can mend.
func (s *state) fits(now time.Time, want *Want, anyPlace bool) bool {
	if s == nil || s.why != nil || now.Sub(s.measured) > min(knownFor, want.MaxLag) || s.lag(now) > want.MaxLag {
		return false
	}
	return want.After.IsZero() || s.facts.has(want.After) && (anyPlace || s.replayed >= want.After.lsn)
}

// has reports whether a position is in the history of a server.
func (f facts) has(p Position) bool { return f.system == p.system && f.timeline >= p.timeline }

// choose returns the replica with the least lag among those that fit. Replicas whose lags differ by less than the interval
// of the measurements take turns.
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
		life := s.all[i].life.Load() // read before the state, which a life that has ended does not belong to
		if known := s.all[i].now.Load(); known.fits(now, want, false) && known.lag(now) <= tie {
			return Choice{i, life.ctx, known.server}, true
		}
	}
	return Choice{}, false // they stopped fitting just now
}

// Find returns a replica that fits, or Primary. It waits for a replica for up to Want.Wait: with Want.After for one that has
// not yet replayed the position, with ReplicaOnly for any. The error is that of ctx, or [ErrNone] with the reason for each
// replica.
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

// await waits until a replica fits.
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
		hope, now := false, time.Now()
		for i, r := range s.all {
			if i >= 64 || not.Has(i) {
				continue
			}
			hope = hope || want.ReplicaOnly || r.now.Load().fits(now, want, true)
			if first && hope {
				r.wake()
			}
		}
		if !hope {
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

// whyNot returns for each replica why it does not fit.
func (s *Set) whyNot(want *Want) error {
	why := []error{ErrNone}
	for _, r := range s.all {
		if err := r.now.Load().whyNot(time.Now(), want); err != nil {
			why = append(why, fmt.Errorf("%s: %w", r.Name, err))
		}
	}
	return errors.Join(why...)
}

// whyNot returns why the replica does not fit, nil if it does.
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
	case now.Sub(s.measured) > min(knownFor, want.MaxLag):
		return errUnmeasured
	case !s.fits(now, want, true):
		return errOtherPlace
	case !s.fits(now, want, false):
		return errNotThere
	}
	return nil
}
