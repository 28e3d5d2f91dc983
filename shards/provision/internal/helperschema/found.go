package helperschema

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Found is the content of a host's helper schema.
type Found struct {
	Settings *Settings // nil if the schema is not installed, or another role owns it
	Ledger   bool      // it has the ledger of migrations
}

// Settings are the row of kiloshard.settings.
type Settings struct {
	Cluster      string
	SchemaPrefix string
	Epoch        time.Time
	TimeBits     int
	ShardBits    int
	TypeBits     int
	SequenceBits int
	Engine       string // the version of the functions
	Keys         string // the strategy; empty before an upgrade from a version that did not record it
}

// Read reads the settings. Call it only if the objects of the helper schema may be used.
func Read(ctx context.Context, conn *pgx.Conn) (Found, error) {
	var found Found
	var installed bool
	const there = `SELECT to_regclass('kiloshard.settings') IS NOT NULL, to_regclass('kiloshard.ledger') IS NOT NULL`
	if err := conn.QueryRow(ctx, there).Scan(&installed, &found.Ledger); err != nil || !installed {
		return found, err
	}
	const query = `
		SELECT cluster, schema_prefix, epoch, time_bits, shard_bits, type_bits, sequence_bits, engine, coalesce(to_jsonb(s) ->> 'keys', '')
		FROM kiloshard.settings s`
	rows, _ := conn.Query(ctx, query) // rows has the error
	settings, err := pgx.CollectOneRow(rows, pgx.RowToStructByPos[Settings])
	if errors.Is(err, pgx.ErrNoRows) {
		return found, nil
	}
	found.Settings = &settings
	return found, err
}
