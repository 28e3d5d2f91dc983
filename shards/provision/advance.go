package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// AdvanceConfig configures [Advance].
type AdvanceConfig struct {
	Map      *shards.Map     // of a layout with a time
	Host     string          // the name of a host of the map
	Beyond   time.Time       // truncated to milliseconds
	LockWait time.Duration   // how long to wait for transactions that use a sequence, while other sessions queue behind. Defaults to 2 s
	Progress fanout.Progress // Defaults to none
}

// Advanced is a sequence that was moved.
type Advanced struct {
	Shard    shards.Number `json:"shard"`
	Schema   string        `json:"schema"`
	Sequence string        `json:"sequence"` // without its schema
	Was      time.Time     `json:"was"`      // of its last ID, to the millisecond
}

// Advance moves the ID sequences of all shards of a host beyond a time. It never moves one back. It runs one
// transaction per shard, which waits for transactions that have used the shard's sequences; calls of next_id() wait for
// it. It returns the sequences that it moved, by shard and name. It does not change sequences that are beyond the time
// already.
//
// The error is a [shards.PartialError] if some shards are not done, for example because a transaction that has used a
// sequence does not end within LockWait (SQLSTATE 55P03). Another Advance continues where this one stopped.
func Advance(ctx context.Context, cfg AdvanceConfig) ([]Advanced, error) {
	if !cfg.Map.Layout().HasTime() {
		return nil, fmt.Errorf("layout %s has no time: its sequences follow no clock", cfg.Map.Layout())
	}
	if cfg.LockWait <= 0 {
		cfg.LockWait = 2 * time.Second
	}
	var mu sync.Mutex
	var moved []Advanced
	advance := func(ctx context.Context, conn *pgx.Conn, n shards.Number) error {
		rows, _ := conn.Query(ctx, "SELECT sequence, was FROM kiloshard.advance($1, $2)", int32(n), cfg.Beyond) // rows has the error
		some, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Advanced, error) {
			a := Advanced{Shard: n, Schema: cfg.Map.Schema(n)}
			return a, row.Scan(&a.Sequence, &a.Was)
		})
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			moved = append(moved, some...)
		}
		return err
	}
	_, err := fanout.Run(ctx, fanout.Config[*pgx.Conn]{
		Map: cfg.Map,
		Open: func(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
			conn, err := session.OpenWith(ctx, host, func(c *pgx.ConnConfig) {
				c.RuntimeParams["lock_timeout"] = fmt.Sprint(cfg.LockWait.Milliseconds())
			})
			if err == nil {
				_, err = conn.PgConn().Exec(ctx, sql.RefuseForeign(sql.Ours{})).ReadAll() // it calls a function of the helper schema
			}
			return conn, err
		},
		Close: func(ctx context.Context, conn *pgx.Conn) { _ = conn.Close(ctx) },
		Alive: func(conn *pgx.Conn) bool { return !conn.IsClosed() },
		Do: func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) []error {
			return []error{advance(ctx, conn, batch[0])}
		},
		Progress: cfg.Progress,
	}, fanout.Plan(cfg.Map, shards.SetOf(cfg.Map.NumbersOn(cfg.Host)...)))
	slices.SortFunc(moved, func(a, b Advanced) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Sequence, b.Sequence))
	})
	return moved, err
}
