package conns

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
)

// start tells tracers that a request is sent. Its arguments are the caller's again if that has left.
func (r *sentRead) start(conn *pgx.Conn, together int) {
	if r.op == nil {
		return
	}
	r.arguments.Lock()
	defer r.arguments.Unlock()
	args := r.args
	if r.settled.Load() {
		args = nil
	}
	r.op.Start(conn, r.sql, args, together)
}

// end hands out the answer to a request, and tells tracers, unless its caller does because it sends the request again.
func (r *sentRead) end(a *buffered.Answer, err error) {
	mine := r.claim()
	switch {
	case r.op == nil, mine && (errors.Is(err, ErrApart) || err != nil && !r.op.Started()):
	default:
		var tag pgconn.CommandTag
		if a != nil {
			tag = a.Tag
		}
		if !mine && (err == nil || errors.Is(err, ErrApart)) {
			err = r.ctx.Err() // its caller has left
		}
		r.op.Finish(tag, err)
	}
	if mine {
		r.publish(a, r.shard.Failed(err))
	}
}

// settleBad calls do for every request, settles those where it fails, and returns the others. do may read the callers'
// arguments.
func settleBad(reads []sentRead, do func(*sentRead) error) []sentRead {
	try := func(r *sentRead) error {
		r.arguments.Lock()
		defer r.arguments.Unlock()
		if r.settled.Load() {
			return context.Canceled // nobody waits for it
		}
		return do(r)
	}
	good := reads[:0]
	for i := range reads {
		r := &reads[i]
		if err := try(r); err != nil {
			r.end(nil, err)
			continue
		}
		good = append(good, *r)
	}
	return good
}
