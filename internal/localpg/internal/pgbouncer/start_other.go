//go:build !unix

package pgbouncer

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/engine"
)

// Start returns engine.ErrUnavailable.
func Start(context.Context, Config) (*Bouncer, error) {
	return nil, fmt.Errorf("start PgBouncer: %w", engine.NoBinaries())
}
