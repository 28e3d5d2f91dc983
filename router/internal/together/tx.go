package together

import "context"

type lateKey struct{}

// BeginLate returns a context for Begin. Begin then sends nothing: BEGIN goes in one message with the first statement of the
// transaction, which must be a Query.
func BeginLate(ctx context.Context) context.Context { return context.WithValue(ctx, lateKey{}, true) }

// BeginsLate reports whether a context is from [BeginLate].
func BeginsLate(ctx context.Context) bool { return ctx.Value(lateKey{}) != nil }

type lastKey struct{}

// Commit returns a context for the last Query of a transaction. COMMIT goes in one message with that Query; the transaction
// is committed once its rows are closed without an error.
func Commit(ctx context.Context) context.Context { return context.WithValue(ctx, lastKey{}, true) }

// Commits reports whether a context is from [Commit].
func Commits(ctx context.Context) bool { return ctx.Value(lastKey{}) != nil }
