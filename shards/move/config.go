package move

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// Config says which shards are moved and how.
type Config struct {
	Map    *shards.Map    // the newest, with the credentials to connect with
	Store  mapstore.Store // where the map is kept
	Shards shards.Set
	To     string // the host that they move to

	// Targets are the hosts of shards that move to another one than To, as package balance plans them.
	Targets map[shards.Number]string

	// Login is what the target adds to the address of the source to log in there, as keywords and values of libpq, such as
	// "user=mover passfile=/var/lib/postgresql/.pgpass". The files are the target's. It must not hold a password.
	Login string

	// LoginWithPassword puts the password of the source's DSN into the subscription. Superusers of the target can read it
	// there until the move ends. Without it the target needs a passfile or a certificate.
	LoginWithPassword bool

	// Offline copies shards while they are locked: readers and writers wait as long as that takes. It is for hosts without
	// logical replication.
	Offline bool

	// Rate is how many bytes of a shard are copied in a second at most. With one, rows are compared a little at a time. Defaults to no limit.
	Rate int64

	PerHost  int           // moves at a time from or to one host. Defaults to 2
	MaxPause time.Duration // the most that writers wait in one cutover. Defaults to 2 s
	MaxLag   time.Duration // how far behind the target may be when a cutover begins. Defaults to a quarter of MaxPause
	Patience time.Duration // how long cutovers are tried, and old transactions waited for. Defaults to no limit

	// LockTimeout is how long a cutover waits for locks at most, and keeps others waiting behind it: the first try waits 20 ms, and each
	// further one twice as long. Defaults to 300 ms. It is nine tenths of the source's deadlock_timeout at most: of a caller and a
	// cutover that wait for each other it is the cutover that gives up.
	LockTimeout time.Duration

	// VerifyUnderFence is up to how many bytes of tables are compared while writers wait. Larger shards are compared before
	// the cutover, as of one moment. Defaults to 8 MiB.
	VerifyUnderFence int64

	// VerifyPause is how long the last changes of a larger shard may be compared while writers wait. If that takes longer when
	// it is tried before, the rows are compared as of a moment before the cutover only. Defaults to 50 ms.
	VerifyPause time.Duration

	// RollbackFor is for how long after the switch a shard can go back to its old host by [Rollback] without a copy, and without the
	// loss of what was written since. Meanwhile a slot on the target keeps WAL, which [Keep] brings to the old host. Defaults to no way back.
	RollbackFor time.Duration
	RollbackWAL int64 // bytes of WAL that the slot may keep, past which the way back is closed. Defaults to 4 GiB

	lost          shards.Set // whose ways back will be closed
	withoutTarget bool       // the target is gone: a job has no session to it

	// Hold is called before a shard is fenced, and before a move goes on whose shard is. No host serves the shard from then on until the
	// returned function is called, so the program must not end in between. Several goroutines may call it at once. Defaults to nothing.
	Hold func() (release func())

	By     string               // who moves, for the ledger and the history of the map. Defaults to kiloshard
	Events func(progress.Event) // called by one goroutine at a time. Defaults to none
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Map == nil || c.Store == nil {
		return c, errors.New("move: Config.Map or Config.Store is nil: expected the map of the cluster and its store")
	}
	if c.PerHost <= 0 {
		c.PerHost = 2
	}
	if c.MaxPause <= 0 {
		c.MaxPause = 2 * time.Second
	}
	if c.MaxLag <= 0 {
		c.MaxLag = c.MaxPause / 4
	}
	if c.Rate < 0 {
		return c, fmt.Errorf("move: Config.Rate %d: expected bytes a second, or 0 for no limit", c.Rate)
	}
	if replicate.HasPassword(c.Login) {
		return c, &shards.FieldError{Field: "login", Found: "a password, which the list of processes and the history of the shell would show", Expected: "passfile=… or sslcert=… and sslkey=…, of files on the target, or LoginWithPassword (--login-with-password)"}
	}
	if c.LockTimeout <= 0 {
		c.LockTimeout = min(300*time.Millisecond, c.MaxPause)
	}
	if c.VerifyUnderFence <= 0 {
		c.VerifyUnderFence = 8 << 20
	}
	if c.VerifyPause <= 0 {
		c.VerifyPause = 50 * time.Millisecond
	}
	if c.RollbackWAL <= 0 {
		c.RollbackWAL = 4 << 30
	}
	if c.By == "" {
		c.By = "kiloshard"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := mapstore.CheckNote("by", c.By); err != nil {
		return c, err
	}
	for _, r := range c.Shards.Ranges() {
		if !c.Map.Has(r.First) || !c.Map.Has(r.Last) {
			return c, fmt.Errorf("shards %s: the map has shards 0 to %d: %w", c.Shards, c.Map.Len()-1, shards.ErrNoShard)
		}
	}
	return c, nil
}

// wayBack returns the way back of a new move, nil for none.
func (c Config) wayBack() *ledger.WayBack {
	if c.RollbackFor <= 0 {
		return nil
	}
	return &ledger.WayBack{For: c.RollbackFor, WAL: c.RollbackWAL}
}

// newMove returns a move that is about to begin.
func (c Config) newMove(n shards.Number) ledger.Move {
	return ledger.Move{ID: ledger.NewID(), Shard: n, Schema: c.Map.Schema(n), Source: c.Map.Host(n).Name, Target: cmp.Or(c.Targets[n], c.To), Step: ledger.Prepare, Who: c.By, Offline: c.Offline, Back: c.wayBack()}
}
