package together

import "context"

type lateKey struct{}

// BeginLate returns a context for beginning a transaction that has nothing sent before its first statement, a Query, and is
// begun in one message with that.
func BeginLate(ctx context.Context) context.Context { return context.WithValue(ctx, lateKey{}, true) }

// BeginsLate reports whether a context is one of [BeginLate].
func BeginsLate(ctx context.Context) bool { return ctx.Value(lateKey{}) != nil }

// Last is the first argument of the last Query of a transaction, which is committed in one message with that, once its rows
// are closed without an error.
type Last struct{}

// LastOf returns arguments without [Last], and whether it was there.
func LastOf(args []any) ([]any, bool) {
	if len(args) == 0 || args[0] != (Last{}) {
		return args, false
	}
	return args[1:], true
}
