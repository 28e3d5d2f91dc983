package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrMoved says that a shard is not on the host where the router's map has it, and that no newer map was available within 3
// seconds. Nothing of the statement has run. Its [shards.ShardError] names the shard and the host.
var ErrMoved = errors.New("the shard is not on the host that the map names")

// movedLimit is how long a call waits for a map that says where its shard is, movedPause how long between two looks, and
// movedLooks how many there are before it sees whether the shard is back.
const (
	movedLimit = 3 * time.Second
	movedPause = 50 * time.Millisecond
	movedLooks = 5
)

// reload asks the source of maps for the newest one, once for all calls that want it at the same time.
type reload struct {
	router *Router
	flight singleflight.Group
}

// newest has the router go over to the newest map of its source. It returns when that is done, or at the end of ctx.
func (r *reload) newest(ctx context.Context) {
	done := r.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), movedLimit)
		defer cancel()
		m, err := r.router.maps.Load(ctx)
		if err == nil && m.Version() > r.router.Map().Version() {
			err = r.router.setMap(m, true)
		}
		if err != nil {
			r.router.mapTrouble(err, false)
		}
		return nil, nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// awaitMove waits for a map in which a shard that is not on this host has another one, and tells whether to send the call
// again: there is one, or it is time to see whether the shard is back, as it is after a move that was aborted.
func (h *host) awaitMove(ctx context.Context, home *home, t *tries) bool {
	if h.reload == nil || h.reload.router.maps == nil {
		return home.next.Load() != nil
	}
	if t.missed.IsZero() {
		t.missed = time.Now()
	}
	for range movedLooks {
		if home.next.Load() != nil {
			return true
		}
		if time.Since(t.missed) > movedLimit {
			return false
		}
		h.reload.newest(ctx)
		if home.next.Load() == nil && !pause(ctx, movedPause) {
			return false
		}
	}
	return true
}

// sayGone adds ErrMoved to the error of a statement that came upon the fence of a shard, where all that it belongs to has had
// no effect: in a transaction, which the error has ended.
func sayGone(err error) error {
	if failure.SQLState(err) != sql.ShardGone || errors.Is(err, ErrMoved) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMoved, err)
}

// mayBeGone reports whether a statement may have failed because its shard has moved away between its entry and itself:
// it came upon the fence, upon nothing where something was, or upon a sequence that gives nothing any more.
func mayBeGone(err error) bool {
	if entryState(err) != "" {
		return false
	}
	switch code := failure.SQLState(err); code {
	case sql.ShardGone, sql.Refused, "55000", "2200H":
		return true
	default:
		return strings.HasPrefix(code, "42") || strings.HasPrefix(code, "0A")
	}
}

// orMoved returns ErrMoved in place of the error of a statement whose shard is not there any more: the error has undone all
// that the statement did. An entry by itself tells. Of several statements sent as one text some may have taken effect.
func (c *call) orMoved(ctx context.Context, err error) error {
	if !mayBeGone(err) || ctx.Err() != nil {
		return err
	}
	scanner := sqltext.Scanner{Text: c.sql}
	if found, _ := scanner.Split(); len(found) > 1 {
		return err
	}
	if c.home.next.Load() != nil {
		return c.home.failed(fmt.Errorf("%w: %w", ErrMoved, err))
	}
	lease, leaseErr := c.home.host.acquire(ctx, c.home)
	if leaseErr != nil {
		return err
	}
	defer lease.release()
	answers, _, entryErr := lease.line.session.send(ctx, c.home.scope(), []statement{{sql: "select", mode: pgx.QueryExecModeExec}})
	if entryErr == nil {
		_ = answers.Close() // nothing was asked
	}
	if entryState(entryErr) == "3F000" {
		return c.home.failed(entryErr)
	}
	return err
}

// sayMoved adds ErrMoved to the error of an entry that says so.
func sayMoved(err error) error {
	if entryState(err) != "3F000" || errors.Is(err, ErrMoved) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMoved, err)
}
