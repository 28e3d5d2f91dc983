package fanout

import "context"

type (
	abortKey     struct{}
	interruptKey struct{}
)

// WithAbort returns a context for a [Run] whose batches under way are cancelled as soon as abort ends, however much of the
// grace is left.
func WithAbort(ctx, abort context.Context) context.Context {
	return context.WithValue(ctx, abortKey{}, abort)
}

// Interrupted returns, of the context that a Do was given, a channel that is closed when the context of its Run has ended:
// what is under way may be finished, but is not to begin again. Of any other context it is that of its own end.
func Interrupted(ctx context.Context) <-chan struct{} {
	if run, ok := ctx.Value(interruptKey{}).(context.Context); ok {
		return run.Done()
	}
	return ctx.Done()
}
