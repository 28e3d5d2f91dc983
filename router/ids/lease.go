package ids

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is returned by a [Lease] that has been closed.
var ErrClosed = errors.New("the lease is closed")

// ErrTooSlow says that blocks of IDs took longer to come than IDs may be old, until the timeout.
var ErrTooSlow = errors.New("a block of IDs came too late")

// LeaseConfig says where [NewLease] takes blocks from and how.
type LeaseConfig[T any] struct {
	Generator Generator[T]

	// Block is how many IDs the first block has, and the least of later ones. Blocks double while they are used up
	// in less than a quarter of their age, and halve when less than half of one is used. Defaults to 100.
	Block int
	// MaxBlock is how many IDs a block has at most. Defaults to 10,000.
	MaxBlock int
	// Age is how long after it was asked for an ID may be handed out. Defaults to 1 s.
	Age time.Duration
	// Timeout is how long a block may take to come, further tries for one that comes too late included. Defaults to 5 s.
	Timeout time.Duration
}

// Lease hands out IDs in memory from blocks that it takes ahead of need. When a block is half used it requests the next
// one, so that callers do not wait for it; an unused lease requests none. IDs of a block come in the generator's order, and
// one block after the other.
//
// It is a [Generator] itself and safe for concurrent use. An ID is handed out once. One that is not handed out in time is
// dropped, a gap.
type Lease[T any] struct {
	cfg LeaseConfig[T]

	mu     sync.Mutex // guards what follows
	blocks []block[T] // not used up, oldest first
	stock  int        // IDs in them
	size   int        // of the next block
	fetch  *fetch     // under way; nil when none is

	closed context.Context // ends with Close
	end    context.CancelFunc
	wait   sync.WaitGroup
}

// block is a run of IDs that may be handed out until they are too old.
type block[T any] struct {
	ids   []T // those left
	size  int // how many there were
	asked time.Time
}

// fetch is a block on its way.
type fetch struct {
	done chan struct{} // closed when the block is there, or err
	err  error
}

// NewLease returns a lease, which holds nothing yet: the first call waits for the first block. The caller must Close it.
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

// Close gives up the IDs that are left and a block on its way. Calls that wait, and those to come, return [ErrClosed].
func (l *Lease[T]) Close() {
	l.mu.Lock()
	l.end()
	l.blocks, l.stock = nil, 0
	l.mu.Unlock()
	l.wait.Wait()
}

// Next returns one ID. It blocks only while none is there, until ctx ends. Its errors are [ErrClosed], [ErrTooSlow],
// those of ctx and those of the generator; a later call tries again.
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

// NextIDs returns n IDs: all from memory as soon as there are so many. More than MaxBlock come from the generator
// straight away. Errors are those of [Lease.Next].
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
		f := l.ask(n) // all of them, since what is there may be too old by then
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

// take removes n IDs from the stock, which has so many. The caller holds mu.
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

// used drops blocks that are used up, and asks for the next block when half of the stock is gone. The caller holds mu.
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

// dropOld gives up IDs that are too old. The caller holds mu.
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

// ask asks for a block of at least so many IDs, unless one is on its way, and returns the one on its way. The caller
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

// get gets n IDs, and gets others when they come too late, until ctx ends.
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

// run gets a block. It serves all callers, so that none of their contexts ends it.
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
