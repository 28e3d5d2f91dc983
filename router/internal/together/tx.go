package together

import "context"

type lateKey struct{}

// BeginLate returns a context for Begin. Begin then sends nothing: BEGIN goes in one message with the first statement of the
// transaction, which must be a Query.
func BeginLate(ctx context.Context) context.Context { return context.WithValue(ctx, lateKey{}, true) }

// BeginsLate reports whether a context is from [BeginLate].
func BeginsLate(ctx context.Context) bool { return ctx.Value(lateKey{}) != nil }

// Last is the first argument of the last Query of a transaction. COMMIT goes in one message with that Query; the transaction
// is committed once its rows are closed without an error.
type Last struct{}

// LastOf removes [Last] from the arguments, and reports whether it was there.
func LastOf(args []any) ([]any, bool) {
	if len(args) == 0 || args[0] != (Last{}) {
		return args, false
	}
	return args[1:], true
}
