package fanout

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// worker works on batches of one host's shards, in one session at a time.
type worker[S any] struct {
	run     *run[S]
	host    shards.Host
	giveUp  func() // ends hostCtx
	session *S     // nil while there is none
}

// work works on batches until there are no more or hostCtx ends, and closes its session. A started
// batch continues until working ends.
func (w *worker[S]) work(hostCtx, working context.Context, batches <-chan []shards.Number) {
	defer func() { w.run.close(working, w.session) }()
	if w.open(hostCtx) != nil {
		return // it has taken no batch; the host's first worker, whose session is open, continues without it
	}
	for batch := range batches {
		if w.run.interrupted() || hostCtx.Err() != nil {
			return
		}
		if err := w.open(hostCtx); err != nil {
			w.run.lost(hostCtx, w.host, err, w.giveUp)
			return
		}
		start := time.Now()
		errs := w.run.cfg.Do(working, *w.session, batch)
		if len(errs) != len(batch) {
			panic(fmt.Sprintf("bug: %d errors for a batch of %d shards", len(errs), len(batch)))
		}
		w.run.finished(w.host, batch, errs, time.Since(start))
		if w.run.cfg.Alive != nil && !w.run.cfg.Alive(*w.session) {
			w.run.close(working, w.session)
			w.session = nil
		}
	}
}

// open opens a session if there is none.
func (w *worker[S]) open(ctx context.Context) error {
	if w.session != nil {
		return nil
	}
	session, err := w.run.cfg.Open(ctx, w.host)
	if err != nil {
		return err
	}
	w.session = &session
	return nil
}
