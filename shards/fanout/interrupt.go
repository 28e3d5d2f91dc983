package fanout

import (
	"context"
	"errors"
)

// ErrInterrupted is what Do's error for a shard wraps when it ended because of an interrupt, and left nothing behind. Run
// counts such a shard as interrupted.
var ErrInterrupted = errors.New("interrupted")

type (
	abortKey     struct{}
	interruptKey struct{}
)

// WithAbort returns a context for a [Run] that cancels its batches under way as soon as abort ends, even during the
// grace.
func WithAbort(ctx, abort context.Context) context.Context {
	return context.WithValue(ctx, abortKey{}, abort)
}

// Interrupted takes the context of a Do and returns a channel that is closed when the context of its Run ends: Do may then
// finish its work, but must not retry it. For any other context it returns ctx.Done().
func Interrupted(ctx context.Context) <-chan struct{} {
	if run, ok := ctx.Value(interruptKey{}).(context.Context); ok {
		return run.Done()
	}
	return ctx.Done()
}
