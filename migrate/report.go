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
	Run        string        // the run's name in the ledger
	By         string        // Config.By, as in the ledger
	Began      time.Time     // when it was called
	Target     int32         // the version to reach
	Done       shards.Set    // reached the target; another run may have helped
	UpToDate   shards.Set    // were at the target or past it before the run
	Steps      []Step        // shards whose version changed, by From and To; failed shards as far as the server confirmed
	Shared     []SharedFile  // files that ran once a host, where they ran
	Changed    []ChangedFile // files that shards ran in another form than the directory's; the shards keep it
	TriedAgain int           // attempts for which a shard, or a host, ran a file again: a lock was not free in time, or it collided with others
	BareNames  []BareName    // in the first shard that is done, on the way up
	Elapsed    time.Duration // from the call to its return

	// Donor is the new shard whose snapshot the others were made from; nil for none. NoSnapshot says why no snapshot could be
	// taken, so that all new shards ran the files, such as a [snapshot.BeyondError].
	Donor      *snapshot.Donor
	NoSnapshot error
}

// Step is the shards that went from one version to another.
type Step struct {
	From   int32      `json:"from"`
	To     int32      `json:"to"`
	Shards shards.Set `json:"shards"`
}

// steps collects the version changes of shards. It is safe for concurrent use.
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

// shares collects the files that ran once a host. It is safe for concurrent use.
type shares struct {
	mu    sync.Mutex // guards hosts
	hosts map[string][]string
}

func (s *shares) add(file, host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil {
		s.hosts = map[string][]string{}
	}
	s.hosts[file] = append(s.hosts[file], host)
}

// inOrder returns the files in the order of the directory.
func (s *shares) inOrder(names []string) []SharedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []SharedFile
	for _, name := range names {
		if hosts := s.hosts[name]; len(hosts) > 0 {
			slices.Sort(hosts)
			all = append(all, SharedFile{File: name, Hosts: hosts})
		}
	}
	return all
}

// SharedFile is a file that ran once on each of some hosts.
type SharedFile struct {
	File  string   `json:"file"`
	Hosts []string `json:"hosts"`
}
