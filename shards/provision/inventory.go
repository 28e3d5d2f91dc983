package provision

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// inventory is what a host holds of a cluster.
type inventory struct {
	host     shards.Host
	database string    // tells two databases apart, also when two DSNs lead to one
	settings *settings // nil where the helper schema is not installed

	// The schemas that look like shards, and whether all that makes a shard is in them, right or wrong.
	complete map[string]bool

	schemas map[string]schema // the same in detail, and the helper schema; only for Verify
}

// settings are the row of kiloshard.settings.
type settings struct {
	Cluster      string
	SchemaPrefix string
	Epoch        time.Time
	TimeBits     int
	ShardBits    int
	SequenceBits int
	Engine       string
}

// schema is what is there of one schema that looks like a shard's.
type schema struct {
	sequence  *sequence // nil when it is lacking
	functions map[functionKey]function
}

// sequence is what pg_sequence says of a shard's own sequence.
type sequence struct {
	Type      string
	Increment int64
	Cache     int64
	Max       int64
	Cycle     bool
}

type functionKey struct {
	Name string
	Args int
}

type function struct {
	Language string
	Body     string
}

// take looks at what a host holds: all schemas whose name is the map's prefix and digits.
func take(ctx context.Context, conn *pgx.Conn, host shards.Host, prefix string, detailed bool) (*inventory, error) {
	inv := &inventory{host: host, complete: map[string]bool{}, schemas: map[string]schema{}}
	looks := []func(context.Context, *pgx.Conn, string) error{inv.takeDatabase, inv.takeSettings, inv.takeComplete}
	if detailed {
		looks = append(looks, inv.takeSchemas, inv.takeFunctions)
	}
	for _, look := range looks {
		if err := look(ctx, conn, "^"+prefix+"[0-9]+$"); err != nil {
			return nil, err
		}
	}
	return inv, nil
}

func (inv *inventory) takeDatabase(ctx context.Context, conn *pgx.Conn, _ string) error {
	const query = `
		SELECT s.system_identifier::text || '/' || d.oid::text
		FROM pg_database d, pg_control_system() s WHERE d.datname = current_database()`
	return conn.QueryRow(ctx, query).Scan(&inv.database)
}

func (inv *inventory) takeSettings(ctx context.Context, conn *pgx.Conn, _ string) error {
	var installed bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('kiloshard.settings') IS NOT NULL`).Scan(&installed); err != nil || !installed {
		return err
	}
	const query = `
		SELECT cluster, schema_prefix, epoch, time_bits, shard_bits, sequence_bits, engine
		FROM kiloshard.settings`
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[settings])
	if err != nil {
		return err
	}
	if len(found) > 0 {
		inv.settings = &found[0]
	}
	return nil
}

func (inv *inventory) takeComplete(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname, c.oid IS NOT NULL AND coalesce(f.count, 0) = 3
		FROM pg_namespace n
		LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'next_id_seq' AND c.relkind = 'S'
		LEFT JOIN (
			SELECT pronamespace, count(*) FROM pg_proc
			WHERE proname = 'next_id' AND pronargs IN (0, 1) OR proname = 'next_ids' AND pronargs = 1
			GROUP BY pronamespace
		) f ON f.pronamespace = n.oid
		WHERE n.nspname ~ $1`
	rows, err := conn.Query(ctx, query, pattern)
	if err != nil {
		return err
	}
	var (
		name     string
		complete bool
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &complete}, func() error {
		inv.complete[name] = complete
		return nil
	})
	return err
}

func (inv *inventory) takeSchemas(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname, s.seqrelid IS NOT NULL, coalesce(format_type(s.seqtypid, NULL), ''),
			coalesce(s.seqincrement, 0), coalesce(s.seqcache, 0), coalesce(s.seqmax, 0), coalesce(s.seqcycle, false)
		FROM pg_namespace n
		LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'next_id_seq'
		LEFT JOIN pg_sequence s ON s.seqrelid = c.oid
		WHERE n.nspname ~ $1`
	rows, err := conn.Query(ctx, query, pattern)
	if err != nil {
		return err
	}
	var (
		name  string
		has   bool
		found sequence
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &has, &found.Type, &found.Increment, &found.Cache, &found.Max, &found.Cycle}, func() error {
		s := schema{functions: map[functionKey]function{}}
		if has {
			copied := found
			s.sequence = &copied
		}
		inv.schemas[name] = s
		return nil
	})
	return err
}

func (inv *inventory) takeFunctions(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname, p.proname, p.pronargs, l.lanname, p.prosrc
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
		WHERE (n.nspname ~ $1 OR n.nspname = 'kiloshard') AND (p.proname = 'catch_up' OR p.proname ~ '^next_id')`
	rows, err := conn.Query(ctx, query, pattern)
	if err != nil {
		return err
	}
	var (
		name  string
		key   functionKey
		found function
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &key.Name, &key.Args, &found.Language, &found.Body}, func() error {
		if _, known := inv.schemas[name]; !known { // the helper schema
			inv.schemas[name] = schema{functions: map[functionKey]function{}}
		}
		inv.schemas[name].functions[key] = found
		return nil
	})
	return err
}
