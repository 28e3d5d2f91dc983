package router

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/replica"
)

// once runs a statement on this server. On the primary it retries as [Shard.Query] does, because no other server is left.
// On a replica it uses a connection to the measured server, or checks the connection's server first.
func (at station) once(ctx context.Context, sql string, args []any) (pgx.Rows, error) {
	var t conns.Attempts
	for {
		c, err := t.Submit(ctx, &at.placement.Shard, at.server, sql, args, false)
		if err == nil {
			var rows pgx.Rows
			if rows, err = c.Query(sql, args); err == nil {
				return rows, nil
			}
		}
		if errors.Is(err, conns.ErrOtherServer) {
			return at.queryGuarded(ctx, sql, args)
		}
		if at.replica != nil && !errors.Is(err, conns.ErrApart) {
			return nil, c.Unsent(err)
		}
		again, err := c.Retry(ctx, &t, err)
		if err := at.orLeft(again, err); err != nil {
			return nil, err
		}
	}
}

// retry returns nil if a request that failed is to be repeated on this server. One to a replica goes to the next server
// instead.
func (at station) retry(ctx context.Context, lease *conns.Request, t *conns.Attempts, repeats bool, err error) error {
	if at.replica != nil {
		return lease.Unsent(err)
	}
	again, err := lease.RetryLease(ctx, t, repeats, err)
	return at.orLeft(again, err)
}

// orLeft returns nil if a request is to be repeated on this server, and an error if the shard has left it since.
func (at station) orLeft(again bool, err error) error {
	switch {
	case !again:
		return err
	case at.from.Gone():
		return conns.ErrRetired
	}
	return nil
}

// query runs a statement on this server and reads the first part of the answer.
func (at station) query(ctx context.Context, sql string, args []any) (pgx.Rows, error) {
	limited, done := at.until(ctx)
	all, err := at.once(limited, sql, args)
	if err == nil {
		all, err = buffered.ReadAhead(&at.placement.Shard.Host.Types, all, nil)
	}
	if err != nil {
		done()
		if errors.Is(context.Cause(limited), replica.ErrSilent) && ctx.Err() == nil {
			err = at.placement.Failed(replica.ErrSilent)
		}
		return nil, err
	}
	if buffered.InMemory(all) {
		done()
		return all, nil
	}
	return &endedRows{all, done}, nil
}
