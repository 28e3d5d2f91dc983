package ids

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed says that the [Lease] is closed.
var ErrClosed = errors.New("the lease is closed")

// ErrTooSlow says that, until the timeout, each block of IDs took longer to arrive than its IDs may be old.
var ErrTooSlow = errors.New("a block of IDs came too late")

// LeaseConfig is the config of [NewLease].
type LeaseConfig[T any] struct {
	Generator Generator[T]

	// Block is the size of the first block, and the minimum for later ones. The size doubles while a block is used up in less
	// than a quarter of Age, and halves when less than half of a block is used. Defaults to 100.
	Block int
	// MaxBlock is the maximum size of a block. Defaults to 10,000.
	MaxBlock int
	// Age is how long after its request an ID may be handed out. Defaults to 1 s.
	Age time.Duration
	// Timeout is how long it may take to fetch a block, including retries when a block comes too late. Defaults to 5 s.
	Timeout time.Duration
}

// Lease hands out IDs from memory. It fetches them in blocks: when a block is half used, it requests the next one, so that
// callers do not wait. An unused lease requests nothing. IDs come block by block, and in the generator's order within a block.
//
// A Lease is a [Generator] itself, and safe for concurrent use. It hands out each ID once. IDs that get too old are dropped and
// leave a gap.
type Lease[T any] struct {
	cfg LeaseConfig[T]

	mu     sync.Mutex // guards what follows
	blocks []block[T] // with IDs left, oldest first
	stock  int        // IDs in the blocks
	size   int        // of the next block
	fetch  *fetch     // nil if none is under way

	closed context.Context // ends with Close
	end    context.CancelFunc
	wait   sync.WaitGroup
}

// block is a set of IDs that may be handed out until they are too old.
type block[T any] struct {
	ids   []T // IDs that are left
	size  int // number of IDs at first
	asked time.Time
}

// fetch is a request for a block.
type fetch struct {
	done chan struct{} // closed when the block or the error is there
	err  error
}

// NewLease returns an empty lease: the first call waits for the first block. The caller must Close it.
func NewLease[T any](cfg LeaseConfig[T]) *Lease[T] {
	if cfg.Block <= 0 {
		cfg.Block = 100
	}
	if cfg.MaxBlock <= 0 {
		cfg.MaxBlock = 10_000
	}
	cfg.MaxBlock = max(cfg.MaxBlock, cfg.Block)
	if cfg.Age <= 0 {
		cfg.Age = time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	l := &Lease[T]{cfg: cfg, size: cfg.Block}
	l.closed, l.end = context.WithCancel(context.Background())
	return l
}

// Close drops the IDs that are left and the block under way. Calls that wait, and later ones, return [ErrClosed].
func (l *Lease[T]) Close() {
	l.mu.Lock()
	l.end()
	l.blocks, l.stock = nil, 0
	l.mu.Unlock()
	l.wait.Wait()
}

// Next returns one ID. If the lease has none, it waits until ctx ends. It returns [ErrClosed], [ErrTooSlow], and the errors of
// ctx and of the generator. A later call tries again.
func (l *Lease[T]) Next(ctx context.Context) (T, error) {
	l.mu.Lock()
	if len(l.blocks) > 0 {
		if b := &l.blocks[0]; time.Since(b.asked) < l.cfg.Age {
			id := b.ids[0]
			b.ids = b.ids[1:]
			l.stock--
			if l.stock <= b.size/2 || len(b.ids) == 0 {
				l.used()
			}
			l.mu.Unlock()
			return id, nil
		}
	}
	l.mu.Unlock()
	ids, err := l.NextIDs(ctx, 1)
	if err != nil {
		var none T
		return none, err
	}
	return ids[0], nil
}

// NextIDs returns n IDs. It waits until the lease has all of them. For more than MaxBlock it calls the generator directly. It
// returns the errors of [Lease.Next].
func (l *Lease[T]) NextIDs(ctx context.Context, n int) ([]T, error) {
	if err := checkCount(n); err != nil {
		return nil, err
	}
	if n > l.cfg.MaxBlock {
		if l.closed.Err() != nil {
			return nil, ErrClosed
		}
		return l.cfg.Generator.NextIDs(ctx, n)
	}
	for {
		l.mu.Lock()
		if l.closed.Err() != nil {
			l.mu.Unlock()
			return nil, ErrClosed
		}
		l.dropOld()
		if l.stock >= n {
			ids := l.take(n)
			l.used()
			l.mu.Unlock()
			return ids, nil
		}
		f := l.ask(n) // all of them, because the stock may be too old by then
		l.mu.Unlock()
		select {
		case <-f.done:
			if f.err != nil {
				return nil, f.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take removes n IDs from the stock, which has at least n. The caller holds mu.
func (l *Lease[T]) take(n int) []T {
	ids := make([]T, 0, n)
	for i := range l.blocks {
		b := &l.blocks[i]
		some := min(n-len(ids), len(b.ids))
		ids = append(ids, b.ids[:some]...)
		b.ids = b.ids[some:]
	}
	l.stock -= n
	return ids
}

// used drops empty blocks, and requests the next block when half of the stock is used. The caller holds mu.
func (l *Lease[T]) used() {
	for len(l.blocks) > 0 && len(l.blocks[0].ids) == 0 {
		b := l.blocks[0]
		if time.Since(b.asked) < l.cfg.Age/4 && b.size >= l.size {
			l.size = min(2*l.size, l.cfg.MaxBlock)
		}
		l.blocks = l.blocks[1:]
	}
	if l.stock <= l.size/2 {
		l.ask(0)
	}
}

// dropOld drops IDs that are too old. The caller holds mu.
func (l *Lease[T]) dropOld() {
	for len(l.blocks) > 0 && time.Since(l.blocks[0].asked) >= l.cfg.Age {
		b := l.blocks[0]
		if len(b.ids) > b.size/2 {
			l.size = max(l.size/2, l.cfg.Block)
		}
		l.stock -= len(b.ids)
		l.blocks = l.blocks[1:]
	}
}

// ask returns the request for a block that is under way. If there is none, it requests a block of at least n IDs. The caller
// holds mu.
func (l *Lease[T]) ask(least int) *fetch {
	if l.fetch != nil || l.closed.Err() != nil {
		return l.fetch
	}
	f := &fetch{done: make(chan struct{})}
	l.fetch = f
	n := max(l.size, least)
	l.wait.Go(func() { l.run(f, n) })
	return f
}

// get gets n IDs, and tries again if they come too late, until ctx ends.
func (l *Lease[T]) get(ctx context.Context, n int) (asked time.Time, ids []T, err error) {
	for {
		asked = time.Now()
		ids, err = l.cfg.Generator.NextIDs(ctx, n)
		took := time.Since(asked)
		if err != nil || took < l.cfg.Age {
			return asked, ids, err
		}
		if ctx.Err() != nil {
			return asked, nil, fmt.Errorf("%w: %s, with an age of %s", ErrTooSlow, took.Round(time.Millisecond), l.cfg.Age)
		}
	}
}

// run fetches a block. It serves all callers, so it does not depend on their contexts.
func (l *Lease[T]) run(f *fetch, n int) {
	ctx, cancel := context.WithTimeout(l.closed, l.cfg.Timeout)
	defer cancel()
	asked, ids, err := l.get(ctx, n)

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed.Err() != nil:
		f.err = ErrClosed
	case err != nil:
		f.err = err
	case len(ids) > 0:
		l.blocks = append(l.blocks, block[T]{ids: ids, size: len(ids), asked: asked})
		l.stock += len(ids)
	}
	l.fetch = nil
	close(f.done)
}
