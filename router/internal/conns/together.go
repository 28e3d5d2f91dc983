package conns

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/together"
)

// QueryTogether sends a statement together with others of the same caller: it waits for them in the queue of a lane, even if
// the lane is idle. It returns false if the statement is to be sent by itself.
func (t *Attempts) QueryTogether(ctx context.Context, at *Shard, sql string, args []any, hint *together.Hint) (pgx.Rows, bool, error) {
	defer hint.Arrive()
	p := at.pool
	r := p.forStatement(ctx, at, sql, args, false)
	if r.lease || session.Refused(r.text) != nil || !p.primary.Passing() {
		return nil, false, nil
	}
	turns := p.primary.Turns()
	r.hint, r.woken = hint, make(chan struct{})
	if p.begin(r) != nil {
		return nil, false, nil // by itself it is tried again if that may help
	}
	hint.Arrive()
	t.turns = turns
	err := p.awaitWoken(r)
	if err == nil {
		return r.answer.Rows(&at.Host.Types), true, nil
	}
	again, err := r.Retry(ctx, t, err)
	return session.FailedRows(err), !again, err
}

// begin finds a lane for a request that waits for others.
func (p *Pool) begin(r *Request) error {
	if err := r.ctx.Err(); err != nil {
		return p.Failed(err)
	}
	l, err := p.admitRequest(r)
	if err != nil {
		return p.Failed(err)
	}
	if l != nil {
		p.mu.Lock()
		l.grant(r)
		p.mu.Unlock()
	}
	return nil
}
