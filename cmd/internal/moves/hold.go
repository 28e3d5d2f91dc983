package moves

import "context"

type holdKey struct{}

// WithHold returns a context whose [holdOf] is hold: until what it returns is called, no signal but a kill ends the program.
func WithHold(ctx context.Context, hold func() (release func())) context.Context {
	return context.WithValue(ctx, holdKey{}, hold)
}

// holdOf returns the function that [WithHold] was given, nil if there is none.
func holdOf(ctx context.Context) func() (release func()) {
	hold, _ := ctx.Value(holdKey{}).(func() (release func()))
	return hold
}
