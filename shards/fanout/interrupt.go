package fanout

import "context"

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
