package adopt

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Damage has fn damage the rows once shards have tables.
func (cfg *Config) Damage(fn func(ctx context.Context, conn *pgx.Conn) error) { cfg.damage = fn }
