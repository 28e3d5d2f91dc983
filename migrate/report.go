package migrate

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
)

// Report is what [Up] or [Down] did.
type Report struct {
	Run      string        // the run's name in the ledger
	By       string        // who ran it, as the ledger has it
	Began    time.Time     // when it was called
	Target   int32         // the version that was to be reached
	Done     shards.Set    // at the target now, and not before; another run may have helped
	UpToDate shards.Set    // stood there, or beyond, before it
	Steps    []Step        // what moved, by From and To; of failed shards as far as their servers answered
	Changed  []ChangedFile // what shards have in another form than the directory's; they keep it
	Elapsed  time.Duration // from the call to its return

	// Donor is the shard that new shards were made like, instead of running the files; nil for none. Where they
	// ran the files because no snapshot could be taken, NoSnapshot says why, such as a [snapshot.NoMajorityError].
	Donor      *snapshot.Donor
	NoSnapshot error
}

// Step is the shards that went from one version to another.
type Step struct {
	From, To int32
	Shards   shards.Set
}

// steps collects what moved. It is safe for concurrent use.
type steps struct {
	mu    sync.Mutex // guards moved
	moved map[[2]int32][]shards.Number
}

func (s *steps) add(n shards.Number, from, to int32) {
	if from == to {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved == nil {
		s.moved = map[[2]int32][]shards.Number{}
	}
	s.moved[[2]int32{from, to}] = append(s.moved[[2]int32{from, to}], n)
}

func (s *steps) sorted() []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Step
	for versions, numbers := range s.moved {
		all = append(all, Step{From: versions[0], To: versions[1], Shards: shards.SetOf(numbers...)})
	}
	slices.SortFunc(all, func(a, b Step) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return all
}
