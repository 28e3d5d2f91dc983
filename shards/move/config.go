package move

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/promote"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// Config is what operations on moves in the ledger take: [Resume], [Abort], [AbortWithoutTarget], [Rollback] and [Verify].
type Config struct {
	Map    *shards.Map    // the newest, with the credentials to connect with
	Store  mapstore.Store // where the map is kept
	Shards shards.Set     // whose moves the operation is for; empty for all

	// Login is what the target adds to the address of the source to log in there, as keywords and values of libpq, such as
	// "user=mover passfile=/var/lib/postgresql/.pgpass". The files are the target's. It must not hold a password.
	Login string

	// LoginWithPassword puts the password of the source's DSN into the subscription. Superusers of the target can read it
	// there until the move ends. Without it the target needs a passfile or a certificate.
	LoginWithPassword bool

	// Rate is how many bytes of a shard are copied in a second at most. With one, rows are compared a little at a time. Defaults to no limit.
	Rate int64

	PerHost    int           // moves at a time from or to one host. Defaults to 2
	MaxPause   time.Duration // the most that writers wait in one cutover. Defaults to 2 s
	MaxLag     time.Duration // how far behind the target may be when a cutover begins. Defaults to a quarter of MaxPause
	RetryLimit time.Duration // how long cutovers are tried, and old transactions waited for. Defaults to no limit

	// LockTimeout is how long a cutover waits for locks at most, and keeps others waiting behind it: the first try waits 20 ms, and each
	// further one twice as long. Defaults to 300 ms. It is nine tenths of the source's deadlock_timeout at most: of a caller and a
	// cutover that wait for each other, the cutover gives up.
	LockTimeout time.Duration

	// VerifyUnderFence is up to how many bytes of tables are compared while writers wait. Larger shards are compared before
	// the cutover, as of one moment. Defaults to 8 MiB.
	VerifyUnderFence int64

	// VerifyPause is how long the last changes of a larger shard may be compared while writers wait. If that takes longer when
	// it is tried before, the rows are compared as of a moment before the cutover only. Defaults to 50 ms.
	VerifyPause time.Duration

	// Hold is called before a shard is fenced, and before a move goes on whose shard is. No host serves the shard from then on until the
	// returned function is called, so the program must not end in between. Several goroutines may call it at once. Defaults to nothing.
	Hold func() (release func())

	By     string               // who moves, for the ledger and the history of the map. Defaults to kiloshard
	Events func(progress.Event) // called by one goroutine at a time. Defaults to none
	Logger *slog.Logger         // Defaults to none

	withoutTarget bool // the target is gone: a job has no session to it
}

// RunConfig is what [Run] and [Plan] take. Shards must not be empty.
type RunConfig struct {
	Config

	To string // the host that the shards move to

	// Targets are the hosts of shards that move to another one than To, as package balance plans them.
	Targets map[shards.Number]string

	// Offline copies shards while they are locked: readers and writers wait as long as that takes. It is for hosts without
	// logical replication.
	Offline bool

	// RollbackFor is for how long after the switch a shard can go back to its old host by [Rollback] without a copy, and without the
	// loss of later writes. A slot on the target keeps WAL for that time, and [Keep] streams it to the old host. Defaults to no way back.
	RollbackFor time.Duration
	RollbackWAL int64 // bytes of WAL that the slot may keep, past which the way back is closed. Defaults to 4 GiB
}

// PromoteConfig is what [Promote] and [PlanPromotion] take.
type PromoteConfig struct {
	Map         *shards.Map
	Store       mapstore.Store
	Shards      shards.Set    // that leave their host
	To          string        // its standby
	MaxPause    time.Duration // as in [Config], like all that follows
	MaxLag      time.Duration
	RetryLimit  time.Duration
	LockTimeout time.Duration
	Hold        func() (release func())
	By          string
	Events      func(progress.Event)
}

// KeepConfig is what [Keep], [KeepBeside] and [CloseLost] take.
type KeepConfig struct {
	Map    *shards.Map
	Shards shards.Set           // whose ways back are kept; empty for all
	Events func(progress.Event) // called by one goroutine at a time. Defaults to none
	Logger *slog.Logger         // Defaults to none
}

func (c Config) withDefaults() (Config, error) {
	if c.Map == nil || c.Store == nil {
		return c, errors.New("move: Config.Map or Config.Store is nil: expected the map of the cluster and its store")
	}
	if c.Rate < 0 {
		return c, fmt.Errorf("move: Config.Rate %d: expected bytes a second, or 0 for no limit", c.Rate)
	}
	if replicate.HasPassword(c.Login) {
		return c, &shards.FieldError{Field: "login", Found: "a password, which the list of processes and the history of the shell would show", Expected: "passfile=… or sslcert=… and sslkey=…, of files on the target, or LoginWithPassword (--login-with-password)"}
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
	if c.LockTimeout <= 0 {
		c.LockTimeout = min(300*time.Millisecond, c.MaxPause)
	}
	if c.VerifyUnderFence <= 0 {
		c.VerifyUnderFence = 8 << 20
	}
	if c.VerifyPause <= 0 {
		c.VerifyPause = 50 * time.Millisecond
	}
	c.By = cmp.Or(c.By, "kiloshard")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := mapstore.CheckNote("by", c.By); err != nil {
		return c, err
	}
	return c, has(c.Map, c.Shards)
}

// has returns an error unless a map has some shards.
func has(m *shards.Map, wanted shards.Set) error {
	for _, r := range wanted.Ranges() {
		if !m.Has(r.First) || !m.Has(r.Last) {
			return fmt.Errorf("shards %s: the map has shards 0 to %d: %w", wanted, m.Len()-1, shards.ErrNoShard)
		}
	}
	return nil
}

func (c RunConfig) withDefaults() (RunConfig, error) {
	var err error
	if c.RollbackWAL <= 0 {
		c.RollbackWAL = 4 << 30
	}
	c.Config, err = c.Config.withDefaults()
	return c, err
}

// newMove returns a move that is about to begin.
func (c RunConfig) newMove(n shards.Number) ledger.Move {
	m := ledger.Move{ID: ledger.NewID(), Shard: n, Schema: c.Map.Schema(n), Source: c.Map.Host(n).Name, Target: cmp.Or(c.Targets[n], c.To), Step: ledger.Prepare, Who: c.By, Offline: c.Offline}
	if c.RollbackFor > 0 {
		m.Back = &ledger.WayBack{For: c.RollbackFor, WAL: c.RollbackWAL}
	}
	return m
}

// promotion is the part of a config that a promotion takes.
func (c Config) promotion() promote.Config {
	return promote.Config{
		Map: c.Map, Store: c.Store, By: c.By, MaxPause: c.MaxPause, MaxLag: c.MaxLag, LockTimeout: c.LockTimeout, Retry: c.RetryLimit,
		Hold: c.Hold, Events: c.Events,
	}
}

// config is the same as a [Config], with defaults.
func (c PromoteConfig) config() (Config, error) {
	return Config{
		Map: c.Map, Store: c.Store, Shards: c.Shards, MaxPause: c.MaxPause, MaxLag: c.MaxLag, RetryLimit: c.RetryLimit, LockTimeout: c.LockTimeout,
		Hold: c.Hold, By: c.By, Events: c.Events,
	}.withDefaults()
}

func (c KeepConfig) withDefaults() (KeepConfig, error) {
	if c.Map == nil {
		return c, errors.New("move: KeepConfig.Map is nil: expected the map of the cluster")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, has(c.Map, c.Shards)
}
