package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/batch"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// CreateShards creates or upgrades the given shards, and returns those that are done, as [batch.Run] does.
func (p *Plan) CreateShards(ctx context.Context, cfg batch.Config, numbers []shards.Number) (shards.Set, error) {
	return batch.Run(ctx, p.wanted.Map, cfg, numbers, p.createBatch)
}

// createBatch creates or upgrades shards of one host in one transaction.
func (p *Plan) createBatch(ctx context.Context, conn *pgx.Conn, numbers []shards.Number) error {
	return p.create(ctx, conn, p.shardScript(numbers))
}

func (p *Plan) create(ctx context.Context, conn *pgx.Conn, script string) error {
	err := session.Run(ctx, conn, script)
	err = connect.NameHolders(ctx, conn.PgConn(), err)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P06" || pg.Code == "23505" && pg.ConstraintName == "pg_namespace_nspname_index") {
		return fmt.Errorf("another role has created the schema in the meantime: %w", err)
	}
	return err
}

// shardScript returns the script that creates or upgrades shards of one host. It fails if another role has created one
// of the missing schemas.
func (p *Plan) shardScript(numbers []shards.Number) string {
	w := p.wanted
	var script strings.Builder
	var created, incomplete []string
	for _, n := range numbers {
		schema, h := w.Map.Schema(n), p.hosts[w.Map.HostIndex(n)]
		found, ok := h.Shards[schema]
		if !ok {
			script.WriteString("CREATE SCHEMA " + schema + ";\n")
			created = append(created, schema)
		}
		if !found.Complete {
			incomplete = append(incomplete, schema)
		}
		objects := w.Shard.Script(n)
		script.WriteString(objects + h.Details.Functions[schema].RestorePublic(schema, objects))
		for _, g := range w.Generators.InShard(n) {
			script.WriteString(g.Script())
		}
		script.WriteString(w.KeyTables.Script(n, schema))
	}
	script.WriteString(w.Shard.CheckSequences(incomplete))
	if len(created) > 0 {
		for _, g := range p.Grants {
			script.WriteString(g.Shards(created))
		}
	}
	return script.String()
}
