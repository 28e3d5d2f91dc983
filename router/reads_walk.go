package router

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/shards"
)

// ErrReadOnly says that a statement which writes was given to a [Reader]. It wraps the server's error, whose SQLSTATE is
// 25006.
var ErrReadOnly = errors.New("a reader does not write: use the shard itself, or one of its transactions")

var errNoOther = errors.New("there is no other server to read from")

// walk is the way of one read from server to server.
type walk struct {
	shard     Shard
	placement *placement // of the shard, on the primary
	want      replica.Want
	not       replica.Tried
	over      bool  // the primary has been tried
	last      error // from the server before
}

func (r *Reader) walk() *walk {
	return &walk{shard: r.shard, placement: r.shard.placement.now(), want: r.reads.want()}
}

// next returns the server to read from next.
func (w *walk) next(ctx context.Context) (station, error) {
	for !w.over {
		rs := w.placement.host.replicas
		at, err := replica.Choice{Index: replica.Primary}, error(nil)
		switch {
		case rs != nil:
			if at, err = rs.Find(ctx, &w.want, w.not); err != nil {
				err = w.placement.host.Failed(err)
			}
		case w.want.ReplicaOnly:
			err = &shards.HostError{Host: w.placement.host.Name, Err: fmt.Errorf("the map has none: %w", ErrNoReplica)}
		}
		if err != nil && w.moved(w.placement, errReplicaLeft) {
			continue
		}
		if err != nil {
			w.over = true
			return station{}, w.because(err)
		}
		placement, err := w.placement.copy(rs, at.Index)
		switch {
		case at.Index == replica.Primary:
			w.over = true
			if rs != nil {
				rs.fallback.Add(1)
			}
			return station{from: w.placement, placement: placement}, err
		case err == nil:
			r := rs.all[at.Index]
			w.not.Add(at.Index)
			r.reads.Add(1)
			return station{w.placement, placement, r, at.Life, at.Server, &w.want}, nil
		}
		if w.moved(w.placement, err) {
			continue
		}
		w.not.Add(at.Index)
		rs.Doubt(at.Index, err)
		w.last = err
	}
	if w.last == nil {
		return station{}, errNoOther
	}
	return station{}, w.last
}

// moved tells whether an error is that the host which a shard was on has left the map, so that nothing was sent, and the shard
// has gone to another one. From there the walk begins again, if it has not already: of two servers that are asked at the
// same time both may fail so.
func (w *walk) moved(from *placement, err error) bool {
	placement := w.shard.placement.now()
	if placement == from || !conns.Retired(err) && !errors.Is(err, errReplicaLeft) {
		return false
	}
	if placement != w.placement {
		w.placement, w.not, w.over = placement, 0, false
	}
	return true
}

// because adds the error of the server before.
func (w *walk) because(err error) error {
	if w.last == nil {
		return err
	}
	return fmt.Errorf("%w; before that: %w", err, w.last)
}

// goesOn tells whether a read that failed on a server goes on to the next one. reads says that the statement may be run a
// second time.
func (w *walk) goesOn(ctx context.Context, at station, err error, reads bool) bool {
	w.last = readOnly(err)
	switch {
	case ctx.Err() != nil:
		return false
	case w.moved(at.from, err):
		return true
	case at.replica == nil:
		return false
	}
	var unsent *shards.HostError
	isUnsent := errors.As(err, &unsent)
	code := failure.SQLState(err)
	switch {
	case isUnsent, code == "":
		at.replica.lost(err)
	case !elsewhere(code):
		return false
	}
	if !isUnsent && !reads {
		return false
	}
	at.replica.failed.Add(1)
	return true
}

// lost has a replica measured again that a connection was lost to, or not to be had.
func (r *replicaHost) lost(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(guardError)) {
		return // it is known already, or not the replica's fault
	}
	r.of.Doubt(r.index, err)
}

// elsewhere tells whether a statement that failed on a replica may do better on another server: the server shuts down or
// starts (57P), lacks something (53, 58), is damaged (XX), has cancelled it for what it had to replay (40), or may not have
// replayed yet that there is such a table, column, function, type or schema.
func elsewhere(code string) bool {
	for _, class := range []string{"08", "40", "53", "57P", "58", "XX"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	switch code {
	case "3F000", "42703", "42704", "42883", "42P01":
		return true
	}
	return false
}

// readOnly explains the error of a server that refused to write.
func readOnly(err error) error {
	var shard *shards.ShardError
	if failure.SQLState(err) != "25006" || !errors.As(err, &shard) {
		return err
	}
	explained := *shard
	explained.Err = fmt.Errorf("%w: %w", ErrReadOnly, shard.Err)
	return &explained
}

// guardError says that a server was asked whether it may be read, and may not: the replica may lead to others that may.
type guardError struct{ error }

// station is a server on the way: the shard's placement there, and the replica if it is one.
type station struct {
	from      *placement // of the shard, on the primary
	placement *placement
	replica   *replicaHost
	life      context.Context // of the replica
	server    string          // for which it was chosen
	want      *replica.Want
}

// until returns a context that ends with ctx, or when the replica does not answer any more.
func (at station) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if at.replica == nil {
		return ctx, func() { cancel(nil) }
	}
	stop := context.AfterFunc(at.life, func() { cancel(replica.ErrSilent) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// endedRows have something done when they end.
type endedRows struct {
	pgx.Rows
	done func()
}

func (r *endedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.done()
	return false
}

func (r *endedRows) Close() {
	r.Rows.Close()
	r.done()
}
