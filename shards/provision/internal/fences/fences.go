// Package fences finds the fences that moves put in the place of shards: schemas with a shard's name that are no
// shards.
package fences

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// Query finds the schemas that are fences: $1 is a pattern for their names, $2 is [sql.FenceMark], the view that marks
// them. A schema with an ID sequence is a shard, even if another role has added the view.
const Query = `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relname = $2 AND c.relkind = 'v' AND n.nspname ~ $1
	AND NOT EXISTS (SELECT FROM pg_class s WHERE s.relnamespace = n.oid AND s.relname = 'next_id_seq')`

// Found are the schemas of one host that moves have fenced or begun.
type Found struct {
	// NoShards are the schemas that are no shards: fences, and those of unfinished moves.
	NoShards []string
	// Stopped describes, by schema, the shards of this host that no host serves. It is empty while a mover runs.
	Stopped map[string]string
}

// Read finds the fences of a host of the map. It reads the ledger of moves only if the objects of the helper schema may
// be used.
func Read(ctx context.Context, conn *pgx.Conn, m *shards.Map, host, pattern string, helperUsable bool) (Found, error) {
	rows, _ := conn.Query(ctx, Query, pattern, sql.FenceMark) // rows has the error
	fences, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return Found{}, err
	}
	found := Found{NoShards: fences, Stopped: map[string]string{}}
	var ledger bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('kiloshard.moves') IS NOT NULL`).Scan(&ledger); err != nil {
		return found, err
	}
	if ledger && helperUsable {
		err = found.readLedger(ctx, conn, m, host)
	}
	return found, err
}

func (f *Found) readLedger(ctx context.Context, conn *pgx.Conn, m *shards.Map, host string) error {
	rows, _ := conn.Query(ctx, `SELECT schema::text, side = 'target', target, fenced, `+sql.MoverAtWork+`
		FROM kiloshard.moves m WHERE outcome IS NULL AND (side = 'target' OR fenced IS NOT NULL)`) // rows has the error
	var schema, target string
	var arrives, running bool
	var since *time.Time
	_, err := pgx.ForEachRow(rows, []any{&schema, &arrives, &target, &since, &running}, func() error {
		n, ok := m.NumberOf(schema)
		placed := ok && m.Has(n) && m.Host(n).Name == host
		switch {
		case arrives && !placed:
			f.NoShards = append(f.NoShards, schema)
		case arrives && slices.Contains(f.NoShards, schema):
			f.Stopped[schema] = "the shard arrived and is still fenced: nobody serves it"
		case arrives: // the map has changed, and this host serves the shard
		case placed && running:
			f.Stopped[schema] = ""
		case placed:
			f.Stopped[schema] = fmt.Sprintf("fenced since %s, on its way to %s: nobody serves it", since.UTC().Format(time.DateTime), target)
		}
		return nil
	})
	return err
}
