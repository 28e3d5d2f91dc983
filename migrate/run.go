package migrate

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/script"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/migrate/internal/turn"
	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
)

// run is the state of one [Up], [Down] or [Force].
type run struct {
	id            string
	cfg           Config
	way           files.Direction
	directory     *files.Directory
	target        int32
	sessions      *session.Pool
	lockSessions  map[string]*session.Session    // by host: hold tern's lock, and run no file
	shardVersions map[shards.Number]shardVersion // at the beginning of the run; not changed by it
	changes       []ChangedFile                  // from the ledgers, at the beginning of the run
	moving        []shards.Range                 // shards being moved to another host
	canaryBefore  shards.Set                     // shards at the target that count as the canary's, as after a failed check
	steps         steps
	shares        shares
	triedAgain    atomic.Int64
	events        events

	snapshot   *snapshot.Snapshot // new shards are made from it; nil if they run the files
	noSnapshot error              // why there is no snapshot although one was wanted

	mu      sync.Mutex      // guards what follows
	touched map[string]bool // by host name: a shard of it was begun
	checked map[hostFile]bool
	under   map[shards.Number]underWay
}

func newRun(cfg Config, way files.Direction, target func(newest int32) (int32, error)) (*run, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := files.Read(cfg.Map, cfg.Files, first(cfg.Shards), cfg.TemplateEnv, cfg.Logger)
	if err != nil {
		return nil, err
	}
	r := &run{
		id: ledger.NewRun(time.Now()), cfg: cfg, way: way, directory: d, sessions: &session.Pool{Logger: cfg.Logger},
		lockSessions: map[string]*session.Session{}, shardVersions: map[shards.Number]shardVersion{}, touched: map[string]bool{}, checked: map[hostFile]bool{}, under: map[shards.Number]underWay{},
	}
	r.events = events{run: r.id, to: cfg.Events}
	r.target, err = target(d.Newest())
	return r, err
}

// pendingAt reports whether a shard at a version has something to run.
func (r *run) pendingAt(version int32) bool { return r.way == files.Force || r.short(version) }

// short reports whether a version has not reached the target.
func (r *run) short(version int32) bool {
	return r.way == files.Up && version < r.target || r.way == files.Down && version > r.target
}

// newest returns the highest version that a shard may have.
func (r *run) newest() int32 {
	if r.way == files.Force {
		return math.MaxInt32
	}
	return r.directory.Newest()
}

func (r *run) shape(n shards.Number, at shardVersion) script.Shape {
	return script.Shape{
		Run: r.id, Who: r.cfg.By,
		Shard: n, Schema: r.cfg.Map.Schema(n), SearchPath: r.cfg.Map.SearchPath(n),
		Version: at.version, Table: at.table, LockTimeout: r.cfg.LockTimeout, StatementTimeout: r.cfg.StatementTimeout,
	}
}

// turn is the lock of a shard.
func (r *run) turn(n shards.Number) turn.Turn {
	return turn.Turn{Shard: n, Schema: r.cfg.Map.Schema(n), Waits: func(host, holders string) {
		r.events.send(Event{Kind: ShardWaits, Host: host, Shard: n, Blockers: " for " + holders})
	}}
}

func first(set shards.Set) shards.Number { return set.Ranges()[0].First }

// hostFile is a file that stayed inside a shard of a host, by a look at every catalog. The other shards of the host cost
// less: see kiloshard.changed_objects.
type hostFile struct {
	host   string
	number int32
}

// everyChecked reports whether all files are checked on a host.
func (r *run) everyChecked(host string, pending []files.File) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range pending {
		if !r.checked[hostFile{host, f.Number}] {
			return false
		}
	}
	return true
}

// haveChecked records that files are checked on a host.
func (r *run) haveChecked(host string, pending []files.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range pending {
		r.checked[hostFile{host, f.Number}] = true
	}
}

// underWay is a shard that a session works on.
type underWay struct {
	host shards.Host
	pid  uint32 // of its session's process on the server
}

func (r *run) begin(s *session.Session, n shards.Number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under[n] = underWay{s.Host, s.Conn.PID()}
}

func (r *run) end(n shards.Number) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.under, n)
}
