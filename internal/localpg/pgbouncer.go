package localpg

import (
	"context"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/pgbouncer"
)

// PgBouncerConfig says which server a [PgBouncer] is in front of, and how it runs.
type PgBouncerConfig = pgbouncer.Config

// A PgBouncer is a PgBouncer on this machine in front of a server.
type PgBouncer = pgbouncer.Bouncer

// StartPgBouncer starts the pgbouncer of this machine on a free port of 127.0.0.1. The error is [ErrUnavailable] if there is
// none. ctx governs the start only.
func StartPgBouncer(ctx context.Context, cfg PgBouncerConfig) (*PgBouncer, error) {
	return pgbouncer.Start(ctx, cfg)
}
