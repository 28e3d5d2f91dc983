package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// ErrNoReplica says that no replica of the host was such as a reader with ReplicaOnly wants it.
var ErrNoReplica = errors.New("no replica will do")

var (
	errUnmeasured = errors.New("it has not been measured lately")
	errLongBehind = errors.New("it is behind by more than the primary's log is known")
	errOtherPlace = errors.New("the position is one of another cluster or timeline")
	errNotThere   = errors.New("it has not replayed the position")
)

// thePrimary stands for the primary where the index of a replica stands for that.
const thePrimary = -1

// tried are the replicas that a read need not be sent to any more, by index. Those past the 64th are not used.
type tried uint64

func (t tried) has(i int) bool { return t&(1<<i) != 0 }

// fit tells whether a replica is such as a reader wants it. now is the time.
func (s *standing) fit(now time.Time, want *Reads, anyPlace bool) bool {
	if s == nil || s.why != nil || now.Sub(s.measured) > min(knownFor, want.MaxLag) || s.lag(now) > want.MaxLag {
		return false
	}
	return anyPlace || want.After.IsZero() || s.replayed >= want.After.place
}

// fit tells whether the replica is such as a reader wants it. anyPlace leaves out Reads.After, as far as waiting helps.
func (r *replica) fit(now time.Time, want *Reads, anyPlace bool) bool {
	s := r.now.Load()
	if !s.fit(now, want, anyPlace) {
		return false
	}
	return want.After.IsZero() || s.system == want.After.system && r.timeline.Load() >= want.After.timeline
}

// choose returns the index of the replica with the least lag among those that fit. Those that differ by less than the
// measurements are apart take turns.
func (rs *replicas) choose(now time.Time, want *Reads, not tried, anyPlace bool) (best int, ok bool) {
	var least time.Duration
	var fitting tried
	for i, r := range rs.all {
		if i < 64 && !not.has(i) && r.fit(now, want, anyPlace) {
			lag := r.now.Load().lag(now)
			if fitting == 0 || lag < least {
				least = lag
			}
			fitting |= 1 << i
		}
	}
	if fitting == 0 {
		return 0, false
	}
	tie := least + 2*time.Duration(rs.every.Load())
	first := int(rs.turn.Add(1)) % len(rs.all)
	for k := range rs.all {
		if i := (first + k) % len(rs.all); i < 64 && fitting.has(i) && rs.all[i].now.Load().lag(now) <= tie {
			return i, true
		}
	}
	return 0, false // they have just ceased to fit
}

// find returns the index of a replica that fits, or thePrimary. It waits for a replica as long as the reader wants: with
// Reads.After for one that has yet to replay so much, with ReplicaOnly for any.
func (rs *replicas) find(ctx context.Context, want *Reads, not tried) (int, error) {
	rs.want(want.MaxLag)
	if i, ok := rs.choose(time.Now(), want, not, false); ok {
		return i, nil
	}
	if !want.After.IsZero() || want.ReplicaOnly {
		if i, ok := rs.await(ctx, want, not); ok {
			return i, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return 0, rs.primary.failed(ctx.Err())
	case want.ReplicaOnly:
		return 0, &shards.HostError{Host: rs.primary.Name, Err: rs.whyNot(want)}
	}
	return thePrimary, nil
}

// await waits until a replica fits.
func (rs *replicas) await(ctx context.Context, want *Reads, not tried) (int, bool) {
	if want.Wait < 0 {
		return 0, false
	}
	rs.waiting.Add(1)
	defer rs.waiting.Add(-1)
	timer := time.NewTimer(want.Wait)
	defer timer.Stop()
	for kick := true; ; kick = false {
		heard := rs.hear()
		now := time.Now()
		if i, ok := rs.choose(now, want, not, false); ok {
			return i, true
		}
		hope := false
		for i, r := range rs.all {
			if i >= 64 || not.has(i) {
				continue
			}
			hope = hope || want.ReplicaOnly || r.fit(now, want, true)
			if kick && hope {
				r.kick()
			}
		}
		if !hope {
			return 0, false
		}
		select {
		case <-heard:
		case <-timer.C:
			return 0, false
		case <-ctx.Done():
			return 0, false
		}
	}
}

// whyNot says of each replica why it does not fit.
func (rs *replicas) whyNot(want *Reads) error {
	why := []error{ErrNoReplica}
	for _, r := range rs.all {
		if err := r.whyNot(time.Now(), want); err != nil {
			why = append(why, fmt.Errorf("%s: %w", r.place.Name, err))
		}
	}
	return errors.Join(why...)
}

// whyNot says why the replica does not fit, nil if it does.
func (r *replica) whyNot(now time.Time, want *Reads) error {
	s := r.now.Load()
	switch {
	case s == nil:
		return errUnmeasured
	case s.why != nil:
		return s.why
	case s.asOf.IsZero():
		return errLongBehind
	case s.lag(now) > want.MaxLag:
		return fmt.Errorf("what it has may be %v old", s.lag(now).Round(time.Millisecond))
	case !s.fit(now, want, true):
		return errUnmeasured
	case !r.fit(now, want, true):
		return errOtherPlace
	case !r.fit(now, want, false):
		return errNotThere
	}
	return nil
}
