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

// ErrReadOnly says that a [Reader] was given a statement that writes. The error that carries it also wraps the server's
// error, whose SQLSTATE is 25006.
var ErrReadOnly = errors.New("a reader does not write: use the shard itself, or one of its transactions")

var errNoOther = errors.New("no other server to read from")

// walk takes one read from server to server until one answers.
type walk struct {
	shard        Shard
	placement    *placement // of the shard, on the primary
	want         replica.Want
	tried        replica.Tried
	triedPrimary bool
	last         error          // of the previous server
	missed       conns.Attempts // with ReplicaOnly, or in a transaction, that found no shard
}

func (r *Reader) walk() *walk {
	return &walk{shard: r.shard, placement: r.shard.placement.now(), want: r.reads.want()}
}

// next returns the next server to read from.
func (w *walk) next(ctx context.Context) (station, error) {
	for !w.triedPrimary {
		rs := w.placement.host.replicas
		at, err := replica.Choice{Index: replica.Primary}, error(nil)
		switch {
		case rs != nil:
			if at, err = rs.Find(ctx, &w.want, w.tried); err != nil {
				err = w.placement.host.Failed(err)
			}
		case w.want.ReplicaOnly:
			err = &shards.HostError{Host: w.placement.host.Name, Err: fmt.Errorf("the map has none: %w", ErrNoReplica)}
		}
		if err != nil && w.moved(w.placement, errReplicaLeft) {
			continue
		}
		if err != nil {
			w.triedPrimary = true
			return station{}, w.withLast(err)
		}
		placement, err := w.placement.copy(rs, at.Index)
		switch {
		case at.Index == replica.Primary:
			w.triedPrimary = true
			if rs != nil {
				rs.fallback.Add(1)
			}
			return station{from: w.placement, placement: placement}, err
		case err == nil:
			r := rs.all[at.Index]
			w.tried.Add(at.Index)
			r.reads.Add(1)
			return station{w.placement, placement, r, at.Life, at.Server, &w.want}, nil
		}
		if w.moved(w.placement, err) {
			continue
		}
		w.tried.Add(at.Index)
		rs.Doubt(at.Index, err)
		w.last = err
	}
	if w.last == nil {
		return station{}, errNoOther
	}
	return station{}, w.last
}

// moved reports whether a read failed because its host left the map before anything was sent, and the shard is now on
// another host. It then restarts the walk there, unless that has happened already: with a hedge, two servers may fail in
// this way at the same time.
func (w *walk) moved(from *placement, err error) bool {
	placement := w.shard.placement.now()
	if placement == from || !conns.Retired(err) && !errors.Is(err, errReplicaLeft) {
		return false
	}
	if placement != w.placement {
		w.restart()
	}
	return true
}

// awaitMoved waits until the shard of a server may be found, there or elsewhere, and restarts the walk.
func (w *walk) awaitMoved(ctx context.Context, at station) bool {
	if !at.from.AwaitMoved(ctx, &w.missed) {
		return false
	}
	w.restart()
	return true
}

// restart has the walk begin again where the shard is now.
func (w *walk) restart() {
	w.placement, w.tried, w.triedPrimary = w.shard.placement.now(), 0, false
}

// withLast adds the error of the previous server.
func (w *walk) withLast(err error) error {
	if w.last == nil {
		return err
	}
	return fmt.Errorf("%w; before that: %w", err, w.last)
}

// goesOn reports whether to try a read that failed on a server on the next one. reads says that the statement may run
// twice.
func (w *walk) goesOn(ctx context.Context, at station, err error, reads bool) bool {
	w.last = readOnly(err)
	switch {
	case ctx.Err() != nil:
		return false
	case w.moved(at.from, err):
		return true
	case at.replica == nil:
		return false
	case errors.Is(err, ErrMoved):
		at.replica.failed.Add(1)
		return !w.want.ReplicaOnly || w.awaitMoved(ctx, at)
	}
	var unsent *shards.HostError
	isUnsent := errors.As(err, &unsent)
	code := failure.SQLState(err)
	switch {
	case isUnsent, code == "":
		at.replica.lost(err)
	case !otherServerMayAnswer(code):
		return false
	}
	if !isUnsent && !reads {
		return false
	}
	at.replica.failed.Add(1)
	return true
}

// lost asks for a new measurement of the replica after a connection to it was lost or could not be made.
func (r *replicaHost) lost(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(guardError)) {
		return // already known, or not the replica's fault
	}
	r.of.Doubt(r.index, err)
}

// otherServerMayAnswer reports whether a statement that failed on a replica may succeed on another server: the connection
// failed (08), the server shuts down or starts (57P), lacks resources or has a system error (53, 58), has an internal error
// (XX), cancelled the statement because of a conflict with recovery (40), or may not have replayed the creation of the
// table, column, function, type or schema.
func otherServerMayAnswer(code string) bool {
	for _, class := range []string{"08", "40", "53", "57P", "58", "XX"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return isMissing(code)
}

// isMissing reports whether a statement names what is not there. One that was not prepared before has not run then.
func isMissing(code string) bool {
	switch code {
	case "3F000", "42703", "42704", "42883", "42P01":
		return true
	}
	return false
}

// readOnly adds [ErrReadOnly] to the error of a server that refused to write.
func readOnly(err error) error {
	var shard *shards.ShardError
	if failure.SQLState(err) != "25006" || !errors.As(err, &shard) {
		return err
	}
	explained := *shard
	explained.Err = fmt.Errorf("%w: %w", ErrReadOnly, shard.Err)
	return &explained
}

// guardError says that a check found one server of a replica unfit to read from. The replica's other servers may be fit.
type guardError struct{ error }

// station is one server of a walk: the shard's placement on it, and the replica, nil for the primary.
type station struct {
	from      *placement // of the shard, on the primary
	placement *placement
	replica   *replicaHost
	life      context.Context // of the replica
	server    string          // that the measurement was made on
	want      *replica.Want
}

// until returns a context that ends with ctx or when the replica stops answering measurements.
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

// endedRows call done when they are closed or read to the end.
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
