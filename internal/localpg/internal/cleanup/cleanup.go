// Package cleanup limits clean-up that continues after the caller's context has ended.
package cleanup

import (
	"context"
	"time"
)

// Do calls fn with a context that ends after two minutes, and not with ctx.
func Do(ctx context.Context, fn func(context.Context) error) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	return fn(limited)
}
